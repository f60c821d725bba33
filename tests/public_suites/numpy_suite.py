"""Runs NumPy's own tests with `stride` in NumPy's place: each whole file in a separate process.

    python numpy_suite.py STRIDED [--json FILE] [--seconds N] [-k EXPRESSION] [file or part of a path ...]

Prints the numbers of passed, failed, skipped and excluded tests, by reason. It ends with 0 regardless of
failures: the counts are in docs/compatibility.md. 77: NumPy's tests or pytest are not installed."""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
FOLDERS = ("_core", "lib", "linalg", "fft", "random")
HERE = pathlib.Path(__file__).resolve().parent


def suite_files(wanted):
    import numpy

    package = pathlib.Path(numpy.__file__).parent
    files = [path for folder in FOLDERS for path in sorted((package / folder / "tests").glob("test_*.py"))]
    return [path for path in files if not wanted or any(part in str(path.relative_to(package)) for part in wanted)]


def run_file(path, environment, options, folder):
    """The last record of each test."""
    results, done = folder / "results", folder / "done"
    results.write_text("")
    done.write_text("")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "numpy_plugin",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-W",
        "ignore",
        "--continue-on-collection-errors",
        "--disable-warnings",
        "-c",
        os.devnull,
        "--rootdir",
        str(path.parents[3]),
        str(path),
    ]
    if options.keyword:
        command += ["-k", options.keyword]
    environment = {
        **environment,
        "STRIDE_SUITE_RESULTS": str(results),
        "STRIDE_SUITE_DONE": str(done),
        "STRIDE_SUITE_SECONDS": str(options.seconds),
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path[1:]]),
    }
    records = {}
    while True:
        size = -1
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=None if options.verbose else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
        # A test that ignores the signal (in C, or in a wait) ends with its process.
        while True:
            try:
                process.wait(3 * options.seconds)
                break
            except subprocess.TimeoutExpired:
                if results.stat().st_size == size:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    break
                size = results.stat().st_size
        records = {}
        for line in results.read_text().splitlines():
            record = json.loads(line)
            before = records.get(record["id"])
            if before is None or before["outcome"] in ("started", "passed"):
                records[record["id"]] = record
        hung = [one for one in records.values() if one["outcome"] == "started"]
        if not records and process.returncode not in (0, 5):  # 5: no tests
            return [
                {"id": path.name, "outcome": "error", "error": f"pytest ended with {process.returncode} before a test"}
            ]
        if not hung:
            return list(records.values())
        for one in hung:
            with open(results, "a", encoding="utf-8") as file:
                file.write(
                    json.dumps({"id": one["id"], "outcome": "failed", "error": "the process ended within the test"})
                    + "\n"
                )
        done.write_text("\n".join(records))


def summary(records):
    outcomes = collections.Counter(one["outcome"] for one in records)
    return {name: outcomes.get(name, 0) for name in ("passed", "failed", "skipped", "excluded", "error")}


def share(counts):
    ran = counts["passed"] + counts["failed"] + counts["error"]
    return 100 * counts["passed"] / ran if ran else 0.0


def line_of(name, counts):
    failed = counts["failed"] + counts["error"]
    numbers = f"{counts['passed']:6} {failed:6} {counts['skipped']:7} {counts['excluded']:8}"
    return f"{name:44} {numbers} {share(counts):6.1f} %"


def reasons_of(records):
    return collections.Counter(one["reason"] for one in records if one["outcome"] == "excluded")


def write(options, records):
    import numpy

    counts = summary(records)
    if options.json:
        whole = {
            "numpy": numpy.__version__,
            "counts": counts,
            "share": round(share(counts), 2),
            "excluded": dict(reasons_of(records)),
            "tests": records,
        }
        pathlib.Path(options.json).write_text(json.dumps(whole, indent=1))
    return counts


def run_files(files, environment, options, folder):
    import numpy
    import numpy_rules

    package = pathlib.Path(numpy.__file__).parent
    records = []
    print(f"{'file':44} passed failed skipped excluded    share")
    for path in files:
        name = str(path.relative_to(package))
        reason = numpy_rules.of_file(name)
        if reason is not None:
            # Its tests are not counted: many of these files cannot even be imported without the type.
            print(f"{name:44} excluded: {reason}", flush=True)
            records.append({"id": name, "file": name, "outcome": "excluded file", "reason": reason})
            continue
        there = run_file(path, environment, options, folder)
        for one in there:
            one["file"] = name
        records += there
        write(options, records)
        print(line_of(name, summary(there)), flush=True)
    return records


def run_docstrings(address):
    os.environ["STRIDE_ADDRESS"] = address
    import numpy_docstrings

    return numpy_docstrings.run()


def main():
    parser = argparse.ArgumentParser(description="NumPy's own tests with stride in NumPy's place.")
    parser.add_argument("strided")
    parser.add_argument("--json", help="write every record and the counts here")
    parser.add_argument("--cache", help="a folder that keeps compiled code for the next run")
    parser.add_argument("--seconds", type=int, default=60, help="the limit of one test")
    parser.add_argument(
        "--docstrings", action="store_true", help="the examples of NumPy's docstrings that print numbers"
    )
    parser.add_argument("-k", dest="keyword", help="as pytest's")
    parser.add_argument("-v", "--verbose", action="store_true", help="pytest's output")
    parser.add_argument("files", nargs="*", help="parts of paths, such as linalg or _core/tests/test_half.py")
    options = parser.parse_intermixed_args()
    for module in ("numpy", "pytest", "hypothesis"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {module} is not installed for {sys.executable}")
            return SKIPPED
    files = suite_files(options.files)
    if not files:
        print(
            "skipped: NumPy's tests are not installed with it"
            if not options.files
            else "no such file of NumPy's tests"
        )
        return SKIPPED
    sys.path.insert(1, str(HERE))
    from stride._daemon import PrivateDaemon

    with tempfile.TemporaryDirectory() as folder:
        daemon = PrivateDaemon(options.strided, ["--no-cuda", "--cpu-devices=1x2"], options.cache)
        try:
            environment = {**os.environ, "STRIDE_ADDRESS": daemon.address}
            if options.docstrings:
                records = run_docstrings(environment["STRIDE_ADDRESS"])
            else:
                records = run_files(files, environment, options, pathlib.Path(folder))
        finally:
            daemon.stop()
    counts = write(options, records)
    print(line_of("all", counts))
    import numpy_rules

    causes = collections.Counter(numpy_rules.cause(one) for one in records if one["outcome"] in ("failed", "error"))
    for cause, number in causes.most_common():
        print(f"  failed:   {number:6} {cause}")
    for reason, number in reasons_of(records).most_common():
        print(f"  excluded: {number:6} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
