"""What users would otherwise import, beside Stride: the same workloads in NumPy, numexpr, CuPy, Numba, JAX, PyTorch and Arrow Flight, as far as they are
installed, in blocks of a few turns each, round after round in the same run.

    PYTHONPATH=build/release/python:. python bench/python/peers.py [--only NAME] [--scale 0.1] [--repeats 15] [--json FILE]

A row is a workload; its times are in milliseconds, the median and the 99th percentile (of fewer than 100 repeats the longest); the ratio is ours by the
peer's, below 1 where we are faster. `limit` is what the bytes that have to move take at the rate of a plain copy in the same memory, measured in the same
run. Rows "one of 16 in a row" begin 16 operations and wait once: the rate at which work is done, where others have how long a program waits for one
result. There only peers stand that begin work without waiting for it. Every peer's result is compared with NumPy's. Connects as stride.connect does; the
devices beside which peers run are those of this machine."""

import argparse
import copy
import os
import statistics
import sys
import threading
import time

import numpy as np

import stride as st
from bench.report.devices import models
from bench.report.rounds import measure, timed
from bench.report.row import Result, Row


def trigonometric(xp, x):
    return xp.cos(x) ** 2 + xp.sin(x) ** 2


class Peer:
    """A library: arrays in, arrays out, and when its work is done. `fused` compiles a function of arrays, where the library can. It `queues` when calls
    return before the work is done, so that several in a row take less than one by one."""

    name = ""
    xp = None
    queues = False

    def called(self, function):
        """Its name in the row of this function."""
        return self.name

    def put(self, host):
        return self.xp.asarray(host)

    def get(self, array):
        return np.asarray(array)

    def sync(self, results):
        """Waits for all that was begun, which made an array or a list of them."""

    def fused(self, function):
        return lambda *arrays: function(self.xp, *arrays)

    def trim(self):
        """Gives back memory that it keeps for later arrays."""


class Stride(Peer):
    name = "stride"
    xp = st
    queues = True

    def sync(self, results=None):
        st.current_session().synchronize()

    def trim(self):
        self.sync()  # tells the daemon what nobody holds any more

    def put(self, host):
        array = st.asarray(host)
        self.sync()
        return array


class NumPy(Peer):
    name = "NumPy"
    xp = np


class CuPy(Peer):
    name = "CuPy"
    queues = True

    def called(self, function):
        return "CuPy, fused kernel" if function in ELEMENTWISE else self.name

    def __init__(self):
        import cupy

        if not cupy.cuda.runtime.getDeviceCount():
            raise ImportError("no GPU")
        self.xp = cupy

    def get(self, array):
        return self.xp.asnumpy(array)

    def sync(self, results):
        self.xp.cuda.get_current_stream().synchronize()

    def trim(self):
        self.xp.get_default_memory_pool().free_all_blocks()

    def fused(self, function):
        if function not in ELEMENTWISE:  # fuse knows few others
            return super().fused(function)
        xp = self.xp

        def program(*arrays):
            return function(xp, *arrays)

        return xp.fuse(kernel_name="program")(program)


class Jax(Peer):
    name = "JAX"
    queues = True

    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp = jax, jax.numpy

    def put(self, host):
        return self.jax.device_put(host)

    def sync(self, results):
        self.jax.block_until_ready(results)

    def fused(self, function):
        return self.jax.jit(lambda *arrays: function(self.xp, *arrays))


class Torch(Peer):
    name = "PyTorch"

    def __init__(self):
        import torch

        self.xp, self.device = torch, "cuda" if torch.cuda.is_available() else "cpu"
        self.queues = self.device == "cuda"

    def put(self, host):
        return self.xp.from_numpy(host).to(self.device)

    def get(self, array):
        return array.cpu().numpy()

    def sync(self, results):
        if self.device == "cuda":
            self.xp.cuda.synchronize()

    def trim(self):
        if self.device == "cuda":
            self.xp.cuda.empty_cache()


class Numexpr(Peer):
    """Expressions alone."""

    name = "numexpr"

    def __init__(self):
        threads = len(os.sched_getaffinity(0))
        os.environ.setdefault("NUMEXPR_MAX_THREADS", str(threads))
        import numexpr

        numexpr.set_num_threads(threads)  # as many as the CPU device has
        self.xp = np
        self.evaluate = numexpr.evaluate

    def fused(self, function):
        text = EXPRESSIONS.get(function)
        if text is None:
            return None
        return lambda *arrays: self.evaluate(text, dict(zip("xyz", arrays)))


class Numba(Peer):
    """The expression of the first table as a ufunc: on the GPU where there is one, else on all cores."""

    name = "Numba"

    def __init__(self):
        import math

        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack  # NumPy 2.5 has the function by this name alone; Numba still names both as it is imported
        import numba
        from numba import cuda

        self.xp = np
        self.on_gpu = self.queues = cuda.is_available()
        self.cuda = cuda

        def trigonometric_of_one(x):  # a lambda's name is none that numba's CUDA target can write down
            return math.cos(x) ** 2 + math.sin(x) ** 2

        self.ufunc = numba.vectorize(["float32(float32)"], target="cuda" if self.on_gpu else "parallel")(trigonometric_of_one)

    def put(self, host):
        return self.cuda.to_device(host) if self.on_gpu else host

    def get(self, array):
        return array.copy_to_host() if hasattr(array, "copy_to_host") else array

    def sync(self, results):
        if self.on_gpu:
            self.cuda.synchronize()

    def fused(self, function):
        return self.ufunc if function is trigonometric else None


def add(xp, x, y):
    return x + y


def multiply_add(xp, x, y, z):
    return x + y * z


def choose(xp, x, y, z):
    return xp.where(x > 0.5, y, z)


def selu(xp, x):
    return 1.05 * xp.where(x > 0, x, 1.67 * xp.exp(x) - 1.67)


def total(xp, x):
    return xp.sum(x)


def column_totals(xp, x):
    return xp.sum(x, axis=0)


def greatest(xp, x):
    return xp.max(x)


def place_of_greatest(xp, x):
    return xp.argmax(x)


def product(xp, x, y):
    return x @ y


ELEMENTWISE = {trigonometric, add, multiply_add, choose, selu}
EXPRESSIONS = {trigonometric: "cos(x)**2 + sin(x)**2", add: "x + y", multiply_add: "x + y * z", choose: "where(x > 0.5, y, z)",
               selu: "1.05 * where(x > 0, x, 1.67 * exp(x) - 1.67)", total: "sum(x)"}


# Operations begun before one wait.
IN_A_ROW = 16


class Workload:
    """`key` is its row's, stable; `copied` elements of 4 or 8 bytes have to be read or written at least; None: not bound by memory. `to_host`: the arrays come from NumPy and the
    result goes back, inside the measured time; `number`: only the result does."""

    def __init__(self, key, name, function, inputs, *, copied=None, to_host=False, number=False, tolerance=1e-5):
        self.key, self.name, self.function, self.inputs, self.copied = key, name, function, inputs, copied
        self.to_host, self.number, self.tolerance = to_host, number, tolerance
        self.in_a_row = 1

    def and_in_a_row(self):
        row = copy.copy(self)
        row.key, row.name, row.in_a_row = f"{self.key}_in_a_row", f"{self.name}, one of {IN_A_ROW} in a row", IN_A_ROW
        return self, row


def workloads(scale, gpu):
    random = np.random.default_rng(1)

    def floats(*shape, dtype=np.float32):
        return random.random(shape, dtype)

    def count(n):
        return max(int(n * scale), 1)

    n, big = count(1e7), count(1e8 if gpu else 1e7)
    ramp = np.arange(n, dtype=np.float32)
    yield Workload("trigonometric_to_host", "cos^2+sin^2 1e7 f32, NumPy in and out", trigonometric, [ramp], to_host=True)
    yield from Workload("trigonometric", "cos^2+sin^2 1e7 f32, resident", trigonometric, [ramp], copied=2 * n).and_in_a_row()
    yield Workload("small_add_to_host", "1000-element add, NumPy in and out", add, [floats(1000), floats(1000)], to_host=True)
    yield from Workload("add", f"x+y {big:.0e} f32, resident", add, [floats(big), floats(big)], copied=3 * big).and_in_a_row()
    yield from Workload("multiply_add", f"x+y*z {big:.0e} f32, resident", multiply_add, [floats(big), floats(big), floats(big)], copied=4 * big).and_in_a_row()
    yield from Workload("choose", f"where(x>0.5,y,z) {big:.0e} f32, resident", choose, [floats(big), floats(big), floats(big)], copied=4 * big).and_in_a_row()
    yield Workload("selu", "selu 1e6 f32, resident", selu, [floats(count(1e6)) - np.float32(0.5)], copied=2 * count(1e6))
    yield Workload("sum", "sum 3e7 f32 to a number", total, [floats(count(3e7))], copied=count(3e7), number=True, tolerance=1e-4)
    integers = random.integers(0, 1000, count(3e7), dtype=np.int32)
    yield Workload("sum_int32", "sum 3e7 i32 to a number", total, [integers], copied=count(3e7), number=True)
    yield Workload("max_int32", "max 3e7 i32 to a number", greatest, [integers], copied=count(3e7), number=True)
    lines = floats(count(5e3), 5000)
    yield Workload("sum_columns", f"{count(5e3)}x5000 f32, sums of columns", column_totals, [lines], copied=lines.size, tolerance=1e-4)
    yield Workload("argmax", f"argmax of {lines.size:.1e} f32 to a number", place_of_greatest, [lines.reshape(-1)], copied=lines.size, number=True, tolerance=0)
    rows, columns = count(1e4), 300_000 if gpu else 10_000
    yield from Workload("matvec", f"{rows}x{columns} f32 by vector, resident", product, [floats(rows, columns), floats(columns)], copied=rows * columns, tolerance=1e-3).and_in_a_row()
    yield Workload("vecmat", f"vector by {rows}x{rows} f32, resident", product, [floats(rows), floats(rows, rows)], copied=rows * rows, tolerance=1e-3)
    for dtype in (np.float32, np.float64):
        left, right = floats(1024, 2048, dtype=dtype), floats(2048, 512, dtype=dtype)
        yield from Workload(f"matmul_{np.dtype(dtype)}", f"matmul 1024x2048x512 {np.dtype(dtype)}, resident", product, [left, right], tolerance=1e-3).and_in_a_row()
        yield Workload(f"matmul_{np.dtype(dtype)}_to_host", f"matmul 1024x2048x512 {np.dtype(dtype)}, NumPy in and out", product, [left, right], to_host=True, tolerance=1e-3)
    yield from Workload("matmul_square_float64", "matmul 1000x1000 f64, resident", product, [floats(1000, 1000, dtype=np.float64)] * 2).and_in_a_row()
    side = count(3000)
    square = floats(side, side)
    yield from Workload("matmul_transpose_float32", f"{side}x{side} f32 by its transpose, resident", product, [square, np.ascontiguousarray(square.T)], tolerance=1e-3).and_in_a_row()


def prepare(peer, workload):
    """A turn of the workload: runs it and returns when its result is where it has to be; and how the result comes to NumPy."""
    function = peer.fused(workload.function)
    if function is None:
        return None
    if workload.to_host:
        return lambda: peer.get(function(*(peer.put(one) for one in workload.inputs)))
    arrays = [peer.put(one) for one in workload.inputs]
    if workload.number:
        return lambda: np.float64(peer.get(function(*arrays)))

    def turn():
        results = [function(*arrays) for _ in range(workload.in_a_row)]  # all are kept, so that all are computed
        peer.sync(results)
        return results

    return turn


def copy_rate(peers):
    """Bytes read and written in a second by a plain copy, where the peers compute."""
    for peer in peers:
        if peer.name == "CuPy":
            source = peer.xp.ones(100_000_000, np.float32)
            target = peer.xp.empty_like(source)

            def copy():
                for _ in range(IN_A_ROW):
                    target.data.copy_from_device_async(source.data, source.nbytes, peer.xp.cuda.get_current_stream())
                peer.sync(target)

            break
    else:
        source = np.ones(10_000_000, np.float32)
        target = np.empty_like(source)

        def copy():
            for _ in range(IN_A_ROW):
                np.copyto(target, source)

    times = [timed(copy)[0] for _ in range(12)]
    return IN_A_ROW * 2 * source.nbytes / statistics.median(times[2:])


# OpenBLAS's threads, ours and NumPy's, watch for more work for 2^26 cycles: on cores that the next turn has to have.
WATCHING_S = 0.04


def rows_of(key, what, times, device, *, called=None, limit=0, num_bytes=0):
    """One for each peer, which the row's id knows by its own name and the row by what it is `called`."""
    called = called or {}
    ours = times.pop("stride")
    fields = dict(bytes=num_bytes, limit_s=limit, limit_name="a plain copy" if limit else "")
    if not times:
        return [Row(f"peer/{key}/alone/{device}", what, ours, **fields)]
    return [Row(f"peer/{key}/{name.lower().replace(' ', '_')}/{device}", what, ours, called.get(name, name), theirs, **fields) for name, theirs in times.items()]


# Of the first column.
_WIDTH = 62


def show(rows):
    for i, row in enumerate(rows):
        if i == 0:
            limit = f"{row.limit_s * 1e3:9.3f}" if row.limit_s else " " * 9
            print(f"{row.what:{_WIDTH}}{row.ours.median_s * 1e3:10.3f}{row.ours.p99_s * 1e3:10.3f}{limit}", flush=True)
        if row.baseline:
            print(f"    {row.baseline_name:{_WIDTH - 4}}{row.baseline.median_s * 1e3:10.3f}{row.baseline.p99_s * 1e3:10.3f}{'':9}{row.ratio:8.2f}", flush=True)


class Flight:
    """An Arrow Flight server in this process, as its users have it, and one table in and out."""

    def __init__(self, transport):
        import pyarrow as pa
        from pyarrow import flight

        self.pa, self.flight = pa, flight
        tables = {}

        class Server(flight.FlightServerBase):
            def do_put(self, context, descriptor, reader, writer):
                tables["x"] = reader.read_all()

            def do_get(self, context, ticket):
                return flight.RecordBatchStream(tables["x"])

        self.server = Server(transport)
        threading.Thread(target=self.server.serve, daemon=True).start()
        location = transport if transport.startswith("grpc+unix") else f"grpc://127.0.0.1:{self.server.port}"
        self.client = flight.connect(location)

    def put(self, host):
        table = self.pa.table({"x": host})
        writer, _ = self.client.do_put(self.flight.FlightDescriptor.for_path("x"), table.schema)
        writer.write_table(table, max_chunksize=1 << 20)
        writer.close()

    def get(self):
        return self.client.do_get(self.flight.Ticket(b"x")).read_all()


def transfers(scale, repeats, device_name, missing):
    """One array to the device and back beside Arrow Flight, which keeps it in host memory."""
    host = np.random.default_rng(2).random(max(int((256 << 20) / 4 * scale), 1), np.float32)
    device = st.asarray(host)
    st.current_session().synchronize()

    def up():
        array = st.asarray(host)
        st.current_session().synchronize()
        return array

    # Kept on the host once it was read: a new array each time, which shares nothing with the last.
    def down():
        return (device + 0).to_numpy()

    mib = host.nbytes >> 20
    for key, ours, theirs in (("upload", up, lambda flight: flight.put(host)), ("download", down, lambda flight: flight.get())):
        turns = {"stride": ours}
        try:
            flight = Flight("grpc://127.0.0.1:0")
            flight.put(host)
            turns["Arrow Flight"] = lambda: theirs(flight)
        except ImportError:
            missing.setdefault("Arrow Flight", "not installed")
        yield rows_of(key, f"{key} of {mib} MiB, Arrow Flight by TCP", measure(turns, repeats), device_name, num_bytes=host.nbytes)


def open_peers(missing):
    """Those that are here; `missing` is told why the others are not."""
    peers = []
    for kind in (NumPy, Numexpr, CuPy, Numba, Jax, Torch):
        try:
            peers.append(kind())
        except Exception as error:  # not installed, or without a device that it needs
            missing[kind.name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            print(f"without {kind.name}: {missing[kind.name]}")
    return peers


def run(workload, peers, repeats, rate, device, missing):
    turns, called = {}, {}
    checked = slice(None) if workload.in_a_row == 1 else slice(1_000_000)  # the same was checked as a whole in the row before

    def comparable(values):
        return np.asarray(np.atleast_1d(values)[checked], np.float64)

    want = comparable(workload.function(np, *workload.inputs)) if workload.inputs[0].size < 1e9 else None

    def check(peer, result):
        got = result if workload.to_host or workload.number else peer.get(result[-1])
        if want is not None:
            np.testing.assert_allclose(comparable(got), want, rtol=workload.tolerance, atol=workload.tolerance, err_msg=peer.name)

    stride = Stride()
    for peer in [stride, *peers]:
        if workload.in_a_row > 1 and not peer.queues:
            continue
        try:
            turn = prepare(peer, workload)
            if turn is None:
                continue
            result = turn()
        except Exception as error:
            if peer.name == "stride":
                raise
            missing[f"{peer.name}, {workload.name}"] = (str(error).splitlines() or [type(error).__name__])[0][:90]
            print(f"    {peer.name} does not do this: {missing[f'{peer.name}, {workload.name}']}")
            continue
        check(peer, result)
        turns[peer.name], called[peer.name] = turn, peer.called(workload.function)
    limit = workload.copied * workload.inputs[0].itemsize / rate if workload.copied else 0
    pause_s = WATCHING_S if workload.function is product else 0.0
    times = measure(turns, repeats, pause_s, workload.in_a_row)
    check(stride, turns["stride"]())  # what cannot be computed is told by who reads it, and takes no time
    return rows_of(workload.key, workload.name, times, device, called=called, limit=limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of elements")
    parser.add_argument("--repeats", type=int, default=15, help="rounds, in each of which every library has one to five measured turns")
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    missing, result = {}, Result()
    peers = open_peers(missing)
    with st.connect() as session:
        devices = session.devices()
        result.devices = models(devices)
        device = next(iter(result.devices))
        print(f"{', '.join(result.devices)}; {options.repeats} rounds; ms")
        print(f"{'':{_WIDTH}}{'median':>10}{'p99':>10}{'limit':>9}{'ratio':>8}")
        rate = copy_rate(peers)
        for workload in workloads(options.scale, any(device.kind == "cuda" for device in devices)):
            if options.only in workload.name:
                result.rows += run(workload, peers, options.repeats, rate, device, missing)
                for peer in [Stride(), *peers]:
                    peer.trim()
                show([row for row in result.rows if row.id.startswith(f"peer/{workload.key}/")])
        if options.only in "upload and download":
            for rows in transfers(options.scale, options.repeats, device, missing):
                result.rows += rows
                show(rows)
    result.missing = [f"{name}: {why}" for name, why in missing.items()]
    if options.json:
        result.write(options.json)


if __name__ == "__main__":
    sys.exit(main())
