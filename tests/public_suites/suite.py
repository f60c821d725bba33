"""Runs a public test suite with modules of stride in its library's place, each file in a separate process.

suite.py RULES STRIDED SUITE [--json=FILE] [--details=FILE] [--time-limit=SECONDS] [PART_OF_A_PATH ...]

RULES is a folder with rules.py: location of the tests, exclusions with reasons, and replacement of imports."""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from stride._daemon import PrivateDaemon, user_cache

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(pathlib.Path(sys.argv[1]).resolve()))
import rules  # noqa: E402

OUTCOMES = ("passed", "failed", "skipped", "excluded")


def lines(path):
    """The records; a line that a killed process did not finish is left."""
    with open(path) as file:
        text = file.read()
    return [json.loads(one) for one in text[: text.rfind("\n") + 1].splitlines()]


def run_once(command, environment, record, limit):
    """Runs pytest until it ends, or until its record has not grown for too long. Returns whether it ended itself."""
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    size, since = -1, time.monotonic()
    while True:
        try:
            output = process.communicate(timeout=1)[0]
            return process.returncode in (0, 1, 5), output
        except subprocess.TimeoutExpired:
            grown = os.path.getsize(record) if os.path.exists(record) else 0
            if grown != size:
                size, since = grown, time.monotonic()
            elif time.monotonic() - since > 2 * limit + 60:
                os.killpg(process.pid, signal.SIGKILL)
                return False, process.communicate()[0]


def run_file(file, arguments, address, folder):
    """Outcomes of a file's tests, by id. A process that dies is counted as the failure of the test it ran; the next one
    continues after it."""
    record = str(folder / "record")
    outcomes = {}
    while True:
        if os.path.exists(record):
            os.remove(record)
        open(record, "w").close()
        done = folder / "done"
        done.write_text(json.dumps(sorted(outcomes)))
        environment = {
            **os.environ,
            "STRIDE_ADDRESS": address,
            "STRIDE_SUITE": arguments.suite,
            "STRIDE_SUITE_LIMIT": str(arguments.time_limit),
            "STRIDE_SUITE_RECORD": record,
            "STRIDE_SUITE_DONE": str(done),
            "PYTHONPATH": os.pathsep.join([str(HERE), arguments.rules, *rules.paths(arguments.suite), *sys.path[1:]]),
        }
        command = [sys.executable, "-m", "pytest", "-p", "plugin", "-p", "no:cacheprovider", "-q", "--tb=short",
                   "-o", "xfail_strict=false", *rules.PYTEST, file]  # fmt: skip
        ended, output = run_once(command, environment, record, arguments.time_limit)
        running = None
        for one in lines(record):
            if "start" in one:
                running = one["start"]
            elif "id" in one:
                before = outcomes.get(one["id"])
                if before is None or before["outcome"] == "passed":
                    outcomes[one["id"]] = one
                if one["id"] == running:
                    running = None
        if ended:
            break
        if running is None:
            outcomes[file] = {"id": file, "outcome": "failed", "message": "pytest ends early", "text": output[-4000:]}
            break
        outcomes[running] = {"id": running, "outcome": "failed", "message": "the process dies or hangs",
                             "text": output[-4000:]}  # fmt: skip
    return outcomes


def files(suite, parts):
    for root in rules.FOLDERS:
        for path in sorted((pathlib.Path(suite) / root).rglob("test_*.py")):
            name = str(path.relative_to(suite))
            if not parts or any(one in name for one in parts):
                yield name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rules")
    parser.add_argument("strided")
    parser.add_argument("suite")
    parser.add_argument("--json", help="writes the counts there")
    parser.add_argument("--details", help="writes each outcome that is not a pass there, one line of JSON each")
    parser.add_argument("--time-limit", type=int, default=120, help="seconds for one test")
    parser.add_argument("parts", nargs="*", help="parts of paths of files to run; all without")
    arguments = parser.parse_intermixed_args()
    arguments.rules = str(pathlib.Path(arguments.rules).resolve())
    arguments.json = arguments.json and os.path.abspath(arguments.json)
    arguments.suite = str(pathlib.Path(arguments.suite).resolve())
    counts, reasons, by_file, whole = collections.Counter(), collections.Counter(), {}, collections.Counter()
    details = open(arguments.details, "w", buffering=1) if arguments.details else None
    os.chdir(arguments.suite)
    daemon = PrivateDaemon(arguments.strided, ["--no-cuda", "--cpu-devices=1x2"], cache=user_cache())
    try:
        with tempfile.TemporaryDirectory() as folder:
            for file in files(arguments.suite, arguments.parts):
                reason = next((why for glob, why in rules.FILES if fnmatch.fnmatch(file, glob)), "")
                if reason:
                    whole[reason] += 1
                    by_file[file] = {"excluded file": reason}
                    continue
                started = time.monotonic()
                outcomes = run_file(file, arguments, daemon.address, pathlib.Path(folder)).values()
                one = collections.Counter(each["outcome"] for each in outcomes)
                for each in outcomes:
                    if each["outcome"] == "excluded":
                        reasons[each["message"]] += 1
                    if details and each["outcome"] != "passed":
                        details.write(json.dumps({"file": file, **each}) + "\n")
                counts += one
                by_file[file] = dict(one)
                print(f"{file}: {_text(one)} ({time.monotonic() - started:.0f} s)", flush=True)
    finally:
        daemon.stop()
    judged = counts["passed"] + counts["failed"]
    print(f"\n{_text(counts)}; {100 * counts['passed'] / max(judged, 1):.1f} % of {judged} passed and failed")
    for reason, count in reasons.most_common():
        print(f"  {count} tests excluded: {reason}")
    for reason, count in whole.most_common():
        print(f"  {count} files excluded: {reason}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({**{one: counts[one] for one in OUTCOMES}, "excluded tests": dict(reasons.most_common()),
                       "excluded files": dict(whole.most_common()), "files": by_file}, file, indent=1)  # fmt: skip
    return 1 if counts["failed"] else 0


def _text(counts):
    return ", ".join(f"{counts[one]} {one}" for one in OUTCOMES if counts[one] or one == "passed")


if __name__ == "__main__":
    sys.exit(main())
