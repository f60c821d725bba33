"""Stride next to the libraries that users otherwise import: NumPy, numexpr, CuPy, Numba, JAX, PyTorch, Arrow Flight.

    PYTHONPATH=build/release/python:. python bench/python/peers.py [--only TEXT,...] [--libraries NAME,...]
        [--cpu THREADS] [--scale 0.1] [--rounds 9] [--seconds 2] [--json FILE]

Each library runs in a process of its own; in each round every library has a block of turns of the row. Times are in
milliseconds: the first turn of a row in its process (`first`, with its compilation), the median and the 99th percentile
of the later ones (of fewer than 100 turns the longest). A ratio is Stride's median by the peer's, below 1 where Stride
is faster. `limit` is the time that the row's bytes take at the rate of a plain copy in the same memory, measured in the
same run. Rows "one of 16" begin 16 operations before one wait; there only libraries stand that queue their work.
Values are compared with NumPy's. Stride connects as stride.connect does.

With `--cpu` the device is a CPU device of THREADS threads (0: all cores), also on a machine with a GPU: a daemon of its
own, and libraries with as many threads as far as they use threads; NumPy's loops have one. `least` is the ratio of the
least times, which other work on the machine disturbs less. `loop` is that ratio without Stride's call: the least time
of the row `call` or `call_number` is subtracted. In rows "one of 16" a library that does not queue has the time of one.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.peers.libraries import LIBRARIES  # noqa: E402
from bench.peers.workload import IN_A_ROW  # noqa: E402
from bench.peers.workloads import ROWS  # noqa: E402
from bench.report.rounds import measure  # noqa: E402
from bench.report.row import Result, Row, Times  # noqa: E402

# OpenBLAS's threads watch for more work for 2^26 cycles, on cores that the next library needs.
WATCHING_S = 0.04
_WIDTH = 58
# Variables by which the peers get their number of threads.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Child:
    """A library's process."""

    def __init__(self, name, gpu, scale):
        self.name, self.settings = name, {"gpu": gpu, "scale": scale}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.peers.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        self.facts = self.ask(open=name)

    def ask(self, **request):
        print(json.dumps({**request, **self.settings}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            return {"missing": f"the process ended with {self.process.wait()}"}
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def reached(values, want, tolerance):
    return np.allclose(values, want, rtol=tolerance, atol=tolerance, equal_nan=True)


class Table:
    def __init__(self, options, gpu, children, device, rate):
        self.options, self.gpu, self.children, self.device, self.rate = options, gpu, children, device, rate
        self.rows, self.missing, self.wrong = [], {}, []
        # Least times of the rows that are a call and nothing else, by whether the result goes to the host.
        self.calls_s = {}

    def prepared(self, workload):
        """The children that have begun this row, with the time of the first turn, and the bytes that it moves."""
        first, moved = {}, 0
        for child in self.children:
            if child.name == "NumPy" and not workload.has_numpy(self.gpu):
                continue
            answer = child.ask(prepare=workload.key)
            if "missing" not in answer:
                first[child], moved = answer["first_s"], answer["moved"]
                continue
            self.missing[f"{child.name}, {workload.what}"] = answer["missing"]
            if child.name == "stride":
                self.wrong.append(f"{workload.key}: {answer['missing']}")
                return {}, 0
        return first, moved

    def times(self, workload, children, in_a_row):
        """Seconds of the measured turns by child. A child with slow turns has fewer rounds."""
        blocks = {}
        on_gpu = [child for child in children if child.facts["queues"] and self.gpu]
        # Threads of host libraries watch for more work: next to a GPU they have turns of their own, after the others.
        for group in (on_gpu, [child for child in children if child not in on_gpu]):
            blocks |= {child: [] for child in group}
            spent, share = dict.fromkeys(group, 0.0), self.options.seconds / len(children)
            for child in group * self.options.rounds:
                if spent[child] > share:
                    continue
                if not self.gpu and workload.on_threads:
                    time.sleep(WATCHING_S)
                begin = time.monotonic()
                blocks[child] += child.ask(block=5, in_a_row=in_a_row, seconds=share / self.options.rounds)["times"]
                spent[child] += time.monotonic() - begin
        return blocks

    def check(self, workload, children):
        if workload.tolerance is None:
            return
        samples = {child.name: child.ask(sample=4096)["values"] for child in children}
        reference = next((name for name in ("NumPy", "CuPy", "JAX") if name in samples), None)
        for name, values in samples.items():
            if reference and not reached(values, samples[reference], workload.tolerance):
                self.wrong.append(f"{workload.key}: {name} differs from {reference}")

    def run(self, workload):
        first, moved = self.prepared(workload)
        if not first:
            return
        fields = dict(limit_s=moved / self.rate, limit_name="a plain copy") if moved else {}
        times = self.times(workload, first, 1)
        if workload.is_call and not self.gpu:
            ours = next(seconds for child, seconds in times.items() if child.name == "stride")
            self.calls_s[workload.number] = min(ours)
        self.check(workload, first)
        in_a_row = {}
        if workload.in_a_row:
            queueing = [child for child in first if child.facts["queues"]]
            in_a_row = self.times(workload, queueing, IN_A_ROW)
            if not self.gpu:  # a library that does not queue has the same time for each of 16
                in_a_row = {child: in_a_row.get(child, seconds) for child, seconds in times.items()}
        if not workload.to_host and not workload.is_call:
            fields["call_s"] = self.calls_s.get(workload.number, 0)
        self.add(workload.key, workload.what, times, fields, first)
        if in_a_row:
            fields.pop("call_s", None)
            self.add(f"{workload.key}_in_a_row", f"{workload.what}, one of {IN_A_ROW}", in_a_row, fields)
        for child in first:
            child.ask(release=True)

    def add(self, key, what, times, fields, first=None):
        named = {child.name: (Times.of(seconds), first[child] if first else 0) for child, seconds in times.items()}
        ours, first_s = named.pop("stride")
        rows = [
            Row(
                f"peer/{key}/{name.lower()}/{self.device}",
                what,
                ours,
                name,
                theirs,
                first_s=first_s,
                baseline_first_s=their_first,
                **fields,
            )
            for name, (theirs, their_first) in named.items()
        ] or [Row(f"peer/{key}/alone/{self.device}", what, ours, first_s=first_s, **fields)]
        show(rows)
        self.rows += rows


def show(rows):
    def line(name, times, first, rest):
        first = f"{first * 1e3:10.2f}" if first else " " * 10
        return f"{name:{_WIDTH}}{first}{times.median_s * 1e3:10.3f}{times.p99_s * 1e3:10.3f}{rest}"

    one = rows[0]
    limit = f"{one.limit_s * 1e3:9.3f}" if one.limit_s else ""
    print(line(one.what, one.ours, one.first_s, limit), flush=True)
    for row in rows:
        if row.baseline:
            ratios = f"{'':9}{row.ratio:8.2f}"
            if "/cpu:" in row.id:
                ratios += f"{row.least_ratio:8.2f}" + (f"{row.loop_ratio:8.2f}" if row.call_s else "")
            print(line("    " + row.baseline_name, row.baseline, row.baseline_first_s, ratios), flush=True)


@contextlib.contextmanager
def cpu_device(threads):
    """A daemon with one CPU device, which stride.connect finds, and as many threads for the peers."""
    from stride._daemon import PrivateDaemon, find_daemon, user_cache

    program = find_daemon()
    if program is None:
        raise SystemExit("no strided: put it into PATH or name it by STRIDE_DAEMON")
    threads = threads or len(os.sched_getaffinity(0))
    daemon = PrivateDaemon(program, ["--no-cuda", f"--cpu-devices={threads}"], cache=user_cache())
    os.environ.update(dict.fromkeys(_THREADS, str(threads)), CUDA_VISIBLE_DEVICES="", STRIDE_ADDRESS=daemon.address)
    try:
        yield
    finally:
        daemon.stop()


def copy_rate(gpu):
    """Bytes read and written in a second by a plain copy, in a process of its own."""
    program = _CUDA_COPY if gpu else _HOST_COPY
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return float(ended.stdout) if ended.returncode == 0 else 0.0


_HOST_COPY = """
import statistics, time
import numpy as np
source = np.ones(25_000_000, np.float32); target = np.empty_like(source); times = []
for _ in range(12):
    begin = time.perf_counter(); np.copyto(target, source); times.append(time.perf_counter() - begin)
print(2 * source.nbytes / statistics.median(times[2:]))
"""
_CUDA_COPY = """
import statistics, time
import cupy as cp
source = cp.ones(100_000_000, cp.float32); target = cp.empty_like(source)
times = []; stream = cp.cuda.get_current_stream()
for _ in range(12):
    begin = time.perf_counter()
    for _ in range(16): target.data.copy_from_device_async(source.data, source.nbytes, stream)
    stream.synchronize(); times.append(time.perf_counter() - begin)
print(16 * 2 * source.nbytes / statistics.median(times[2:]))
"""


class Flight:
    """An Arrow Flight server in this process, as its users have it, with one table in and out."""

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
        self.client = flight.connect(f"grpc://127.0.0.1:{self.server.port}")

    def put(self, host):
        table = self.pa.table({"x": host})
        writer, _ = self.client.do_put(self.flight.FlightDescriptor.for_path("x"), table.schema)
        writer.write_table(table, max_chunksize=1 << 20)
        writer.close()

    def get(self):
        return self.client.do_get(self.flight.Ticket(b"x")).read_all()


def transfers(scale, rounds, device, missing):
    """One array to the device and back, next to Arrow Flight, which keeps it in host memory."""
    import stride as st

    host = np.random.default_rng(2).random(max(int((256 << 20) / 4 * scale), 1), np.float32)
    with st.connect() as session:
        array = st.asarray(host)

        def up():
            new = st.asarray(host)
            session.synchronize()
            return new

        def down():
            return (array + 0).to_numpy()  # a new array each time: the client keeps the copy of one that was read

        for key, ours, theirs in (
            ("upload", up, lambda flight: flight.put(host)),
            ("download", down, lambda flight: flight.get()),
        ):
            turns = {"stride": ours}
            try:
                flight = Flight("grpc://127.0.0.1:0")
                flight.put(host)
                turns["Arrow Flight"] = lambda: theirs(flight)
            except ImportError:
                missing.setdefault("Arrow Flight", "not installed")
            times = measure(turns, rounds)
            what = f"{key} of {host.nbytes >> 20} MiB, Arrow Flight by TCP"
            mine = times.pop("stride")
            for name, peer in times.items():
                yield Row(f"peer/{key}/arrow_flight/{device}", what, mine, name, peer, bytes=host.nbytes)
            if not times:
                yield Row(f"peer/{key}/alone/{device}", what, mine, bytes=host.nbytes)


def starts(gpu, device, rounds, missing):
    """From the start of a Python process to a first result; Stride with the daemon that connect finds or starts."""
    programs = {
        "stride": "import numpy as np, stride as st; st.connect(); "
        "float(st.sum(st.asarray(np.ones(1000, np.float32)) * 2))",
        "CuPy": "import numpy as np, cupy as cp; float(cp.sum(cp.asarray(np.ones(1000, np.float32)) * 2))",
        "JAX": "import numpy as np, jax.numpy as jnp; float(jnp.sum(jnp.asarray(np.ones(1000, np.float32)) * 2))",
        "NumPy": "import numpy as np; float(np.sum(np.ones(1000, np.float32) * 2))",
    }

    def turn(text):
        return lambda: subprocess.run([sys.executable, "-c", text], check=True, capture_output=True)

    for name in ("CuPy", "JAX"):
        if (
            not gpu
            and name == "CuPy"
            or subprocess.run([sys.executable, "-c", programs[name]], capture_output=True).returncode
        ):
            del programs[name]
    times = measure({name: turn(text) for name, text in programs.items()}, max(rounds // 3, 1))
    ours = times.pop("stride")
    imports = measure(
        {"stride": turn("import stride"), "NumPy and grpc": turn("import numpy, grpc")}, max(rounds // 3, 1)
    )
    for name, theirs in times.items():
        yield Row(f"peer/start/{name.lower()}/{device}", "a process's start to its first result", ours, name, theirs)
    yield Row(
        f"peer/import/numpy_grpc/{device}",
        "import stride",
        imports["stride"],
        "NumPy and grpc",
        imports["NumPy and grpc"],
    )


def has_gpu():
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


def summary(rows):
    """The median over rows of the ratio to the best peer, and the number of slower rows."""
    best = {}
    for row in rows:
        if row.ratio is not None:
            key = row.id.split("/")[1]
            best[key] = max(best.get(key, 0), row.ratio)
    if not best:
        return "no row has a peer"
    behind = sum(ratio > 1 for ratio in best.values())
    median = statistics.median(best.values())
    text = f"{len(best)} rows with a peer; ratio to the best peer: median {median:.2f}, {behind} behind"
    loops = {}
    for row in rows:
        if row.call_s and row.loop_ratio is not None:
            loops.setdefault(row.what, []).append(row.loop_ratio)
    if not loops:
        return text
    behind = sorted(((max(ratios), what) for what, ratios in loops.items() if max(ratios) > 1), reverse=True)
    lines = [f"{len(loops)} rows without the call, {len(behind)} of them behind:"]
    return "\n".join([text, *lines, *(f"{ratio:8.2f}  {what}" for ratio, what in behind)])



def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose key or text has one of these in it")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="which libraries, with commas between")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of elements")
    parser.add_argument("--rounds", type=int, default=9, help="in each, every library has one to five measured turns")
    parser.add_argument("--seconds", type=float, default=2.0, help="time that a row may take, over all libraries")
    parser.add_argument("--json", help="a file for the rows")
    parser.add_argument("--cpu", type=int, metavar="THREADS", help="a CPU device, also next to a GPU; 0: all cores")
    options = parser.parse_args()
    with cpu_device(options.cpu) if options.cpu is not None else contextlib.nullcontext():
        return compare(options, parser)


def compare(options, parser):
    wanted = options.only.split(",")
    gpu, result = options.cpu is None and has_gpu(), Result()
    children, missing = [], {}
    for name in options.libraries.split(","):
        child = Child(name, gpu, options.scale)
        if "missing" in child.facts:
            missing[name] = child.facts["missing"]
            child.close()
        else:
            children.append(child)
    ours = next((child for child in children if child.name == "stride"), None)
    if ours is None:
        parser.error(f"no stride: {missing.get('stride', 'not among --libraries')}")
    device, result.devices = ours.facts["device"], ours.facts["models"]
    table = Table(options, gpu, children, device, copy_rate(gpu) or float("inf"))
    print(f"{', '.join(result.devices.values())}; next to {', '.join(c.name for c in children if c is not ours)}; ms")
    more = "" if gpu else f"{'least':>8}{'loop':>8}"
    print(f"{'':{_WIDTH}}{'first':>10}{'median':>10}{'p99':>10}{'limit':>9}{'ratio':>8}{more}")
    for workload in ROWS:
        if gpu and workload.on_host:
            continue
        if workload.is_call and not gpu or any(text in workload.key or text in workload.what for text in wanted):
            table.run(workload)
    for name, rows in (
        ("upload and download", lambda: transfers(options.scale, options.rounds, device, missing)),
        ("start and import", lambda: starts(gpu, device, options.rounds, missing)),
    ):
        if any(text in name for text in wanted):
            for one in rows():
                show([one])
                table.rows.append(one)
    for child in children:
        child.close()
    result.rows = table.rows
    result.missing = [f"{name}: {why}" for name, why in {**missing, **table.missing}.items()]
    print(summary(table.rows), *result.missing, *(f"WRONG: {one}" for one in table.wrong), sep="\n")
    if options.json:
        result.write(options.json)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
