"""Runs the programs of npbench with `stride` in NumPy's place and `stride.cupy` in CuPy's, and compares with NumPy.

    python npbench_suite.py STRIDED NPBENCH [--preset S] [--seconds N] [--json FILE] [part of a program's name ...]

Each program runs in a separate process. The data come from NumPy's run of npbench's own `initialize`, whose version
with replaced imports must give the same shapes and types. Tolerances are those of npbench."""

import argparse
import ast
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

VERSIONS = ("numpy", "cupy")
# Programs that cannot be compared, by name.
SKIPPED = {"spmv": "needs sparse matrices"}


class Differs(Exception):
    """The program runs, and its result is not NumPy's."""


def names(value):
    return list(value or ())


class Program:
    """One program of npbench, from its description."""

    def __init__(self, root, name):
        self.name = name
        with open(root / "bench_info" / f"{name}.json") as file:
            self.info = json.load(file)["benchmark"]
        self.folder = root / "npbench" / "benchmarks" / self.info["relative_path"]

    def path(self, version=None):
        return self.folder / (self.info["module_name"] + (f"_{version}" if version else "") + ".py")

    def load(self, version=None, replace=False):
        """The names of a module, with its import lines replaced if asked to."""
        import import_lines

        path = self.path(version)
        tree = ast.parse(path.read_text(), str(path))
        if replace:
            import_lines.replaced(tree)
        namespace = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(tree, str(path), "exec"), namespace)
        return namespace

    def data(self, preset, replace=False):
        """Parameters and the arrays of `initialize`."""
        data = dict(self.info["parameters"][preset])
        initialize = self.info.get("init")
        if initialize:
            function = self.load(replace=replace)[initialize["func_name"]]
            made = function(*(data[one] for one in initialize["input_args"]))
            outputs = initialize["output_args"]
            data.update(zip(outputs, [made] if len(outputs) == 1 else made))
        return data

    def call(self, function, data, copied):
        """The program's results, and the arrays that it writes."""
        arrays = names(self.info.get("array_args"))
        arguments = {one: copied(data[one]) if one in arrays else data[one] for one in self.info["input_args"]}
        returned = function(*arguments.values())
        results = [] if returned is None else list(returned) if isinstance(returned, (tuple, list)) else [returned]
        return results, [arguments[one] for one in names(self.info.get("output_args"))]


def compare(program, theirs, ours):
    """Some of npbench's CuPy versions return nothing: their written arrays are compared."""
    import numpy as np

    if ours and len(theirs) != len(ours):
        raise Differs(f"{len(ours)} results, NumPy has {len(theirs)}")
    rtol, atol = program.info.get("rtol", 1e-5), program.info.get("atol", 1e-8)
    for index, (one, other) in enumerate(zip(theirs, ours)):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            raise Differs(f"result {index} has shape {other.shape}, NumPy's {one.shape}")
        if np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
            continue
        error = np.linalg.norm(one - other) / np.linalg.norm(one)
        if not error < program.info.get("norm_error", 1e-5):
            raise Differs(f"result {index} differs by {error:.2g} of its norm")


def compare_data(theirs, ours):
    """Random numbers differ, so only shapes and types are compared."""
    import numpy as np

    for name, one in theirs.items():
        one, other = np.asarray(one), np.asarray(ours[name])
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Differs(f"initialize: {name} is {other.dtype}{other.shape}, NumPy's {one.dtype}{one.shape}")


def run_one(root, name, version, preset):
    """Runs in the program's own process. Returns seconds of NumPy, of a first and of a second run."""
    import numpy as np

    import stride

    program = Program(root, name)
    data = program.data(preset)
    started = time.monotonic()
    theirs = program.call(program.load("numpy")[program.info["func_name"]], data, np.copy)
    seconds = [time.monotonic() - started]
    with stride.connect(os.environ["STRIDE_ADDRESS"], timeout=600):
        compare_data(data, program.data(preset, replace=True))
        function = program.load(version, replace=True)[program.info["func_name"]]
        for _ in range(2):
            started = time.monotonic()
            ours = [[np.asarray(one) for one in part] for part in program.call(function, data, stride.asarray)]
            seconds.append(time.monotonic() - started)
            for their_part, our_part in zip(theirs, ours):
                compare(program, their_part, our_part)
    return seconds


def child(arguments):
    try:
        result = {"outcome": "passed", "seconds": run_one(pathlib.Path(arguments[0]), *arguments[1:4])}
    except Differs as error:
        result = {"outcome": "differs", "error": str(error)}
    except Exception as error:  # each is the outcome of a program
        result = {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
        if os.environ.get("STRIDE_SUITE_TRACEBACK"):
            import traceback

            traceback.print_exc()
    pathlib.Path(arguments[4]).write_text(json.dumps(result))


def run_process(arguments, seconds, folder, environment):
    result = folder / "result"
    if result.exists():
        result.unlink()
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", *map(str, arguments), str(result)],
        env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return {"outcome": "too slow", "error": f"more than {seconds} s"}
    if not result.exists():
        return {"outcome": "error", "error": f"the process ended with {process.returncode}"}
    return json.loads(result.read_text())


def main():
    from stride._daemon import PrivateDaemon, user_cache

    parser = argparse.ArgumentParser(description="npbench with stride in place of NumPy and CuPy.")
    parser.add_argument("strided")
    parser.add_argument("npbench", type=pathlib.Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--seconds", type=int, default=200, help="the limit of one program, as npbench's")
    parser.add_argument("--json", type=pathlib.Path, help="write each outcome here")
    parser.add_argument("parts", nargs="*", help="parts of programs' names; all without")
    options = parser.parse_intermixed_args()
    root = options.npbench.resolve()
    outcomes, records = collections.Counter(), []
    daemon = PrivateDaemon(options.strided, ["--no-cuda", "--cpu-devices=1x2"], cache=user_cache())
    environment = {**os.environ, "STRIDE_ADDRESS": daemon.address}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted((root / "bench_info").glob("*.json")):
                if options.parts and not any(part in path.stem for part in options.parts):
                    continue
                for version in VERSIONS:
                    if not Program(root, path.stem).path(version).exists():
                        continue
                    if path.stem in SKIPPED:
                        one = {"outcome": "skipped", "error": SKIPPED[path.stem]}
                    else:
                        arguments = (root, path.stem, version, options.preset)
                        one = run_process(arguments, options.seconds, pathlib.Path(folder), environment)
                    outcomes[one["outcome"]] += 1
                    records.append({"program": path.stem, "version": version, **one})
                    times = " ".join(f"{second:8.3f}" for second in one.get("seconds", ()))
                    print(f"{path.stem:26} {version:6} {one['outcome']:8} {times}{one.get('error', '')}", flush=True)
                    if options.json:
                        options.json.write_text(json.dumps(records, indent=1))
    finally:
        daemon.stop()
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return 0 if set(outcomes) <= {"passed", "skipped"} else 1


if __name__ == "__main__":
    sys.exit(child(sys.argv[2:]) if sys.argv[1:2] == ["--child"] else main())
