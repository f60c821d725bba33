"""Many tenants of one daemon, each with a connection, a session and one array that it computes with."""

import threading
import time

import grpc
import stubs

SIZE = 1024


class Tenant:
    """One client. Every method raises the service's error."""

    def __init__(self, address, index):
        self._array = stubs.module("array_pb2")
        self._array_service = stubs.module("array_service_pb2")
        self._compute = stubs.module("compute_service_pb2")
        self._operation = stubs.module("operation_pb2")
        self.index = index
        self._channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._call = {"metadata": [("stride-tenant", f"crowd-{index}")], "timeout": 240}
        sessions = stubs.module("session_service_pb2_grpc").SessionServiceStub(self._channel)
        self._runs = stubs.module("compute_service_pb2_grpc").ComputeServiceStub(self._channel)
        self._session = sessions.CreateSession(
            stubs.module("session_service_pb2").CreateSessionRequest(), **self._call
        ).session.name

    def close(self):
        self._channel.close()

    def _run(self, operation):
        return self._runs.Run(self._compute.RunRequest(session=self._session, operation=operation), **self._call)

    def put(self):
        """Creates the tenant's array: SIZE times its own number."""
        spec = self._array.ArraySpec(data_type=self._array.DATA_TYPE_INT32, shape=[SIZE])
        value = self._array.Scalar(int_value=self.index)
        fill = self._operation.Creation.Fill(spec=spec, value=value)
        self._run(
            self._operation.Operation(
                creation=self._operation.Creation(fill=fill), outputs=[self._operation.Output(handle=1)]
            )
        )

    def compute(self):
        """Doubles the array on its device and returns the seconds taken. AssertionError: the elements are wrong."""
        operand = self._operation.Operand(handle=1)
        begin = time.monotonic()
        response = self._run(
            self._operation.Operation(
                ufunc=self._operation.Ufunc(function="add", inputs=[operand, operand]),
                outputs=[self._operation.Output(inline_result=True)],
            )
        )
        seconds = time.monotonic() - begin
        data = response.results[0].inline_array.data
        assert data == (2 * self.index).to_bytes(4, "little") * SIZE, f"tenant {self.index} lost its array"
        return seconds


def in_parallel(work, items, num_threads):
    """Calls work(item) for each on some threads: (results in order, errors as (item, error))."""
    results, errors, lock, left = [None] * len(items), [], threading.Lock(), list(enumerate(items))[::-1]

    def loop():
        while True:
            with lock:
                if not left:
                    return
                index, item = left.pop()
            try:
                results[index] = work(item)
            except Exception as error:  # The caller reports it.
                with lock:
                    errors.append((item, error))

    threads = [threading.Thread(target=loop) for _ in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors
