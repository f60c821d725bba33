"""A well-behaved client: small Run calls one after the other, whose times it reports.

As a program (bystander.py ADDRESS STUBS): each line `begin` on standard input starts a count, each `end`
writes it as JSON. A separate process, so that the attacker's own load does not count as the daemon's delay.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

PAUSE_SECONDS = 0.002
TIMEOUT_SECONDS = 20


class Bystander:
    """The process, from the test's side."""

    def __init__(self, address, stubs, token=""):
        self._process = subprocess.Popen([sys.executable, str(pathlib.Path(__file__)), address, str(stubs)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, "STRIDE_BYSTANDER_TOKEN": token})
        assert self._process.stdout.readline() == "ready\n", "the bystander cannot call"

    def begin(self):
        self._say("begin")

    def end(self):
        """{count, failures, first_failure, p50, p99, max}; times in milliseconds."""
        self._say("end")
        return json.loads(self._process.stdout.readline())

    def measure(self, seconds):
        self.begin()
        time.sleep(seconds)
        return self.end()

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _say(self, word):
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()


class _Caller:
    def __init__(self, address):
        import grpc
        import stubs
        self._error = grpc.RpcError
        token = os.environ.get("STRIDE_BYSTANDER_TOKEN")
        self._metadata = [("authorization", f"Bearer {token}")] if token else [("stride-tenant", "calm")]
        compute = stubs.module("compute_service_pb2")
        operation = stubs.module("operation_pb2")
        array = stubs.module("array_pb2")
        self._run = stubs.module("compute_service_pb2_grpc").ComputeServiceStub(grpc.insecure_channel(address)).Run
        spec = array.ArraySpec(data_type=array.DATA_TYPE_INT32, shape=[4])
        inline = array.InlineArray(spec=spec, data=bytes(range(16)))
        operand = operation.Operand(inline_array=inline)
        self._request = compute.RunRequest(operation=operation.Operation(
            ufunc=operation.Ufunc(function="add", inputs=[operand, operand]),
            outputs=[operation.Output(inline_result=True)]))
        self._expected = b"".join((2 * int.from_bytes(inline.data[i:i + 4], "little")).to_bytes(4, "little")
                                  for i in range(0, 16, 4))

    def call(self):
        """The error of a call as text, or None."""
        try:
            response = self._run(self._request, timeout=TIMEOUT_SECONDS, metadata=self._metadata)
        except self._error as error:
            return f"{error.code()}: {error.details()}"
        return None if response.results[0].inline_array.data == self._expected else "a wrong result"


class _Recorder:
    def __init__(self, caller):
        self._caller = caller
        self._lock = threading.Lock()
        self._times, self._failures = [], []
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self):
        while True:
            start = time.monotonic()
            failure = self._caller.call()
            elapsed = time.monotonic() - start
            with self._lock:
                self._times.append(elapsed * 1000)
                if failure:
                    self._failures.append(failure)
            time.sleep(PAUSE_SECONDS)

    def begin(self):
        with self._lock:
            self._times, self._failures = [], []

    def end(self):
        with self._lock:
            times, failures = sorted(self._times), self._failures
        at = lambda share: times[min(len(times) - 1, int(share * len(times)))] if times else float("inf")
        return {"count": len(times), "failures": len(failures), "first_failure": failures[0] if failures else "",
                "p50": at(0.5), "p99": at(0.99), "max": at(1)}


def main():
    import stubs
    address, folder = sys.argv[1:3]
    stubs.use(folder)
    caller = _Caller(address)
    failure = caller.call()  # compiles
    if failure:
        sys.exit(failure)
    recorder = _Recorder(caller)
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "begin\n":
            recorder.begin()
        elif line == "end\n":
            print(json.dumps(recorder.end()), flush=True)


if __name__ == "__main__":
    main()
