"""Stride from Python with only its .proto files: NumPy arrays in, NumPy arrays out.

    python3 client/python/examples/quickstart.py [ADDRESS]

ADDRESS (default: STRIDE_ADDRESS, else unix:/run/stride/stride.sock) is a running strided. Needs grpcio, grpcio-tools,
googleapis-common-protos and numpy; the stubs are made at run time and thrown away.
"""

import importlib
import itertools
import os
import pathlib
import sys
import tempfile

import grpc
import grpc_tools
import numpy as np
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHUNK = 1 << 20

KERNEL = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + 1.0f;
}
"""


def make_stubs(folder):
    """Compiles proto/stride/v1 into `folder` and makes it importable."""
    site = pathlib.Path(sys.modules["google.rpc.status_pb2"].__file__).parents[2]
    protos = sorted(str(p.relative_to(ROOT / "proto")) for p in (ROOT / "proto/stride/v1").glob("*.proto"))
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    code = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{site}", f"-I{well_known}",
                        f"--python_out={folder}", f"--grpc_python_out={folder}", *protos])
    if code != 0:
        sys.exit("the .proto files do not compile")
    sys.path.insert(0, str(folder))


def stub_module(name):
    return importlib.import_module(f"stride.v1.{name}")


class Session:
    """The few calls that this example needs, over one session."""

    def __init__(self, channel):
        self.array = stub_module("array_pb2")
        self.operation = stub_module("operation_pb2")
        self.array_pb = stub_module("array_service_pb2")
        self.compute_pb = stub_module("compute_service_pb2")
        session_pb = stub_module("session_service_pb2")
        self.session_pb = session_pb
        self.arrays = stub_module("array_service_pb2_grpc").ArrayServiceStub(channel)
        self.compute = stub_module("compute_service_pb2_grpc").ComputeServiceStub(channel)
        self.sessions = stub_module("session_service_pb2_grpc").SessionServiceStub(channel)
        self.name = self.sessions.CreateSession(session_pb.CreateSessionRequest()).session.name
        self.handles = itertools.count(1)

    def close(self):
        self.sessions.DeleteSession(self.session_pb.DeleteSessionRequest(name=self.name))

    def data_type(self, dtype):
        return self.array.DataType.Value(f"DATA_TYPE_{np.dtype(dtype).name.upper()}")

    def dtype(self, data_type):
        return np.dtype(self.array.DataType.Name(data_type).removeprefix("DATA_TYPE_").lower())

    def spec(self, dtype, shape):
        return self.array.ArraySpec(data_type=self.data_type(dtype), shape=shape)

    def put(self, values):
        """Uploads; returns the handle."""
        values = np.ascontiguousarray(values)
        handle = next(self.handles)
        request = self.array_pb.PutArrayRequest

        def messages():
            yield request(header=request.Header(parent=self.name, array_id=str(handle),
                                                spec=self.spec(values.dtype, values.shape)))
            view = memoryview(values.reshape(-1).view(np.uint8))
            for at in range(0, len(view), CHUNK):
                yield request(data=bytes(view[at:at + CHUNK]))

        self.arrays.PutArray(messages())
        return handle

    def fetch(self, handle):
        """Downloads; waits until the array exists."""
        replies = self.arrays.FetchArray(self.array_pb.FetchArrayRequest(name=f"{self.name}/arrays/{handle}"))
        array = next(replies).array
        return np.frombuffer(b"".join(r.data for r in replies), self.dtype(array.data_type)).reshape(array.shape)

    def execute(self, *operations):
        """Sends operations down one stream, many in one message, and returns their results."""
        commands = [self.compute_pb.Command(id=i, operation=o, wait=True) for i, o in enumerate(operations)]
        request = self.compute_pb.ExecuteRequest(session=self.name, commands=commands)
        results = {}
        for response in self.compute.Execute(iter([request])):
            results.update((r.id, r) for r in response.results)
        for result in results.values():
            if result.status.code != 0:
                raise RuntimeError(describe(result.status))
        return [results[i] for i in range(len(operations))]

    def expression(self, text, **inputs):
        """Returns the operation and the handle of its result, which may be used before it exists."""
        handle = next(self.handles)
        pb = self.operation
        operation = pb.Operation(
            expression=pb.Expression(text=text, inputs={k: pb.Operand(handle=v) for k, v in inputs.items()}),
            outputs=[pb.Output(handle=handle)])
        return operation, handle

    def kernel(self, source, entry, grid, block, arguments):
        return self.operation.Operation(kernel_launch=self.operation.KernelLaunch(
            source=source, entry=entry, grid=self.operation.Dim3(x=grid), block=self.operation.Dim3(x=block),
            arguments=arguments))


def describe(status):
    """One line for a google.rpc.Status and its details."""
    parts = [status.message]
    for detail in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            parts.append(f"reason {info.reason}, {dict(info.metadata)}")
        elif detail.Unpack(bad):
            parts += [f"{v.field}: {v.description}" for v in bad.field_violations]
    return "; ".join(parts)


def rich_status(error):
    """The google.rpc.Status inside a grpc.RpcError."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=error.code().value[0], message=error.details())


def expressions(session):
    x = np.arange(1_000_000, dtype=np.float32)
    handle = session.put(x)
    # The second uses the first's result before either has run: one round trip for both.
    first, y = session.expression("cos(x)**2 + sin(x)**2", x=handle)
    second, z = session.expression("where(y > 0, 2*x + y, 0)", x=handle, y=y)
    results = session.execute(first, second)
    got_y, got_z = session.fetch(y), session.fetch(z)
    np.testing.assert_allclose(got_y, 1, atol=5e-7)
    np.testing.assert_allclose(got_z, 2 * x + 1, rtol=1e-6)
    print(f"expressions: {got_y.size:,} elements on {results[0].timeline.device}, right")


def kernels(session):
    pb = session.operation
    n = 100_000
    x = np.linspace(-1, 1, n, dtype=np.float32)
    out = next(session.handles)
    arguments = [
        pb.KernelArgument(scalar=session.array.Scalar(float_value=2.5)),
        pb.KernelArgument(array=pb.Operand(handle=session.put(x))),
        pb.KernelArgument(new_array=pb.NewArray(spec=session.spec(np.float32, [n]), output=pb.Output(handle=out))),
        pb.KernelArgument(scalar=session.array.Scalar(int_value=n)),
    ]
    session.execute(session.kernel(KERNEL, "axpy", (n + 255) // 256, 256, arguments))
    np.testing.assert_allclose(session.fetch(out), np.float32(2.5) * x + 1, rtol=1e-6, atol=1e-6)
    print(f"kernel: {n:,} elements, right")


def one_round_trip(session):
    """A small job with inputs and result inside the messages."""
    pb = session.operation
    values = np.array([3, 1, 2], dtype=np.int64)
    operand = pb.Operand(inline_array=session.array.InlineArray(spec=session.spec(values.dtype, values.shape),
                                                                data=values.tobytes()))
    operation = pb.Operation(reduction=pb.Reduction(function=pb.Reduction.FUNCTION_SUM, input=operand),
                             outputs=[pb.Output(inline_result=True)])
    response = session.compute.Run(session.compute_pb.RunRequest(operation=operation))
    array = response.results[0].inline_array
    total = np.frombuffer(array.data, session.dtype(array.spec.data_type)).reshape(array.spec.shape)
    assert total == 6 and total.dtype == np.int64
    print(f"run: sum of {values} is {total}, right")


def errors(session):
    """Mistakes come back with a reason and the field at fault."""
    a, b = session.put(np.zeros(3)), session.put(np.zeros(4))
    wrong, _ = session.expression("a + b", a=a, b=b)
    try:
        session.execute(wrong)
    except RuntimeError as error:
        print(f"error, as it should be: {error}")
    else:
        sys.exit("shapes (3,) and (4,) were added")
    try:
        session.arrays.GetArray(session.array_pb.GetArrayRequest(name=f"{session.name}/arrays/999999"))
    except grpc.RpcError as error:
        print(f"error, as it should be: {error.code().name}: {describe(rich_status(error))}")
    else:
        sys.exit("an array that does not exist was found")


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STRIDE_ADDRESS", "unix:/run/stride/stride.sock")
    with tempfile.TemporaryDirectory() as folder:
        make_stubs(folder)
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=10)
            session = Session(channel)
            try:
                for part in (expressions, kernels, one_round_trip, errors):
                    part(session)
            finally:
                session.close()
    print("quickstart: all right")


if __name__ == "__main__":
    main()
