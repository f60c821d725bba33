"""Runs programs of public collections with their import lines replaced, and compares each statement with NumPy's run.

    python script_suite.py STRIDED FOLDER [--seconds N] [--json FILE] [part of a path ...]

Programs are Python files, notebooks, and texts with code blocks. A program works if each statement that runs with NumPy
runs, and values, printed numbers, shapes and types agree. Random numbers are NumPy's in both (paired_random.py)."""

import argparse
import ast
import collections
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import script_units

HERE = pathlib.Path(__file__).resolve().parent
SLOW = 20  # times NumPy's seconds, and a second more, are noted
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf")
_TIMES = re.compile(r"\d (u|m|n)?s(ec)? per loop|[Tt]ime|[Ss]econds|[Ss]peed|\d m?s\b")
_ANY = re.compile(r"\bempty(_like)?\(|time\.(time|perf_counter|monotonic)\(|\btimeit\b")  # values are any
_TYPE = re.compile(r"(dtype=)?(np\.)?(u?int|float|complex)\d+|0x[0-9a-f]+")
# Types of elements that the service does not have, by the text of the program or the error.
_EXCLUDED = re.compile(
    r"dtype\s*=\s*(object|str|np\.str_|np\.object_?|'[USOaV]|\"[USOaV]|\[)|datetime64|timedelta64|"
    r"np\.ma\b|import ma\b|np\.char\b|np\.rec|"
    r"np\.matrix|np\.mat\(|longdouble|recarray|__version__|show_config|timeit"
)
_EXCLUDED_ERROR = re.compile(
    r"dtype (object|<U\d+|\|S\d+|<M8|<m8|\[\()|structured|masked arrays|strings|datetime|"
    r"DataTypeMismatch: .*(object|<U|\|S)"
)


def run(mode, program, root, result, seconds, environment, reference=None):
    command = [sys.executable, str(HERE / "script_run.py"), mode, str(program), str(result)]
    if result.exists():
        result.unlink()
    process = subprocess.Popen(
        command + ([str(reference)] if reference else []), cwd=program.parent, start_new_session=True,
        env={**environment, "STRIDE_SCRIPTS_ROOT": str(root)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        process.wait(seconds)
        slow = False
    except subprocess.TimeoutExpired:
        slow = True
    try:
        os.killpg(process.pid, signal.SIGKILL)  # processes that the program has started
    except ProcessLookupError:
        pass
    process.wait()
    try:
        with open(result, "rb") as file:
            return {**pickle.load(file), "slow": slow}
    except (OSError, EOFError, pickle.UnpicklingError):
        return {"records": [], "finished": False, "slow": slow}


def differences(theirs, ours, path="value"):
    """Where two digests differ, in words."""
    import numpy as np

    if theirs[0] in ("other", "excluded"):
        return []
    numbers = "number" in (theirs[0], ours[0]) and {theirs[0], ours[0]} <= {"number", "array"}
    if theirs[0] != ours[0] and not numbers:
        return [f"{path}: {_short(ours)}, NumPy's {_short(theirs)}"]
    if theirs[0] == "items":
        if theirs[1].keys() != ours[1].keys():
            return [f"{path}: {len(ours[1])} items, NumPy's {len(theirs[1])}"]
        return [one for key, value in theirs[1].items() for one in differences(value, ours[1][key], f"{path}[{key}]")]
    if theirs[0] in ("array", "number"):
        one, other = theirs[1], ours[1]
        if one.shape != other.shape:
            return [f"{path}: shape {other.shape}, NumPy's {one.shape}"]
        if one.dtype != other.dtype and not numbers:
            return [f"{path}: dtype {other.dtype}, NumPy's {one.dtype}"]
        rtol = {2: 1e-2, 4: 1e-3}.get(one.dtype.itemsize, 1e-6) if one.dtype.kind in "fc" else 0
        if one.dtype.kind == "b":
            same = np.array_equal(one, other)
        else:
            finite = np.abs(one[np.isfinite(one)]) if one.size else one
            scale = float(np.max(finite)) if finite.size else 0.0
            same = np.allclose(one, other, rtol=rtol, atol=rtol * scale * 1e-3 + (1e-12 if rtol else 0), equal_nan=True)
        return [] if same else [f"{path}: values differ"]
    return []


def _short(one):
    return f"{one[0]} {one[1]!r}"[:60]


def numbers_differ(theirs, ours):
    """Whether printed numbers differ; other text is not compared."""
    if _TIMES.search(theirs):
        return False
    texts = (_TYPE.sub("", text) for text in (theirs, ours))
    one, other = ([float(number) for number in _NUMBER.findall(text)] for text in texts)
    return len(one) != len(other) or any(
        not (a == b or abs(a - b) <= 1e-5 * max(abs(a), abs(b)) + 1e-9 or a != a and b != b) for a, b in zip(one, other)
    )


def judge(theirs, ours):
    """(outcome, [(kind, cause, statement)]) of a program. Consequences of an earlier problem do not count."""
    ran = [one for one in theirs["records"] if not one.get("error")]
    text = "\n".join(one["source"] for one in ran)
    if not ran or not re.search(r"\b(numpy|cupy|jax)\b", text):
        return "skipped", [("skipped", "the program does not run with NumPy, or does not import it", "")]
    if theirs["slow"]:
        return "skipped", [("skipped", "too slow with NumPy", "")]
    problems, tainted = [], set()
    for index, one in enumerate(theirs["records"]):
        if one.get("error") or "testmod(" in one["source"]:  # the examples are statements here
            continue
        other = ours["records"][index] if index < len(ours["records"]) else None
        where = f"line {one['line']}: {one['source'][:200]}"
        if other is None or "seconds" not in other:
            problems.append(("too slow" if ours["slow"] else "process ended", "", where))
            break
        loaded, stored = names_of(one["source"])
        problem = problem_of(one, other, where)
        if not problem:
            # A function that reads a failed value fails when it is called.
            is_late = one["source"].startswith(("def ", "class ", "@")) and loaded & tainted
            tainted = tainted | stored if is_late else tainted - stored
        elif loaded & tainted or _ANY.search(one["source"]) and problem[0] in ("value", "output"):
            tainted |= stored
        else:
            excluded = _EXCLUDED.search(one["source"]) or _EXCLUDED_ERROR.search(problem[1]) or has_excluded(one)
            problems.append(("excluded", *problem[1:]) if excluded else problem)
            tainted |= stored | set(problem[0] == "value" and loaded or ())
    counted = [one for one in problems if one[0] != "excluded"]
    return counted[0][0] if counted else "excluded" if problems else "works", counted or problems


def names_of(source):
    """Names that a statement reads, and those that it sets or may change by a call of a method or an item."""
    loaded, stored = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.alias):
            stored.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            stored.add(node.name)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            loaded.add(node.target.id)
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            stored.update(one.id for one in ast.walk(node.value) if isinstance(one, ast.Name))
    return loaded, stored


def has_excluded(record):
    return any(one[0] == "excluded" for one in [record.get("value", ("",)), *record["names"].values()])


def problem_of(one, other, where):
    if other.get("error"):
        return "error", other["error"], where + "\n" + other.get("traceback", "")[-1500:]
    found = differences(one.get("value", ("other", "")), other.get("value", ("other", "")))
    for name, value in one["names"].items():
        if name in other["names"]:
            found += differences(value, other["names"][name], name)
    if found:
        return "dtype" if all("dtype" in each for each in found) else "value", "; ".join(found[:3]), where
    if numbers_differ(one["output"], other["output"]):
        return "output", f"{other['output'][:300]!r}, NumPy's {one['output'][:300]!r}", where
    return None


def seconds_of(run_, theirs):
    return sum(one.get("seconds", 0) for one, base in zip(run_["records"], theirs["records"]) if not base.get("error"))


def slowest(theirs, ours):
    pairs = [
        (other.get("seconds", 0), one.get("seconds", 0), one["source"][:100])
        for one, other in zip(theirs["records"], ours["records"])
    ]
    return max(pairs, default=(0, 0, ""))


def programs(folder, parts, without):
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix in script_units.SUFFIXES and path.is_file() and not path.name.startswith("test_"):
            if not parts or any(part in name for part in parts):
                text = path.read_text(errors="replace")
                if without and re.search(without, text):
                    continue
                if re.search(r"\b(import|from)\s+(numpy|cupy|jax)\b", text):
                    yield path


def main():
    from stride._daemon import PrivateDaemon, user_cache

    parser = argparse.ArgumentParser(description="Programs of public collections with stride in NumPy's place.")
    parser.add_argument("strided")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60, help="the limit of a program; with NumPy a third of it")
    parser.add_argument("--json", type=pathlib.Path, help="write each outcome here")
    parser.add_argument("--most", type=int, default=10**9, help="evenly spaced programs, at most so many")
    parser.add_argument("--without", help="leave programs out whose text has a match of this expression")
    parser.add_argument("parts", nargs="*", help="parts of paths; all without")
    options = parser.parse_intermixed_args()
    outcomes, records = collections.Counter(), []
    daemon = PrivateDaemon(options.strided, ["--no-cuda", "--cpu-devices=1x2"], cache=user_cache())
    environment = {
        **os.environ, "STRIDE_ADDRESS": daemon.address, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path[1:]]),
        "OMP_NUM_THREADS": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9",
    }  # fmt: skip
    try:
        with tempfile.TemporaryDirectory() as made:
            root = pathlib.Path(made) / "programs"
            shutil.copytree(options.folder, root)
            one, other = pathlib.Path(made) / "numpy", pathlib.Path(made) / "stride"
            chosen = list(programs(root, options.parts, options.without))
            for program in chosen[:: -(-len(chosen) // options.most) or 1]:
                theirs = run("numpy", program, root, one, max(options.seconds // 3, 1), environment)
                ours = {"records": [], "slow": False}
                outcome, problems = judge(theirs, theirs)
                if outcome != "skipped":
                    ours = run("stride", program, root, other, options.seconds, environment, one)
                    outcome, problems = judge(theirs, ours)
                outcomes[outcome] += 1
                numpys, strides = seconds_of(theirs, theirs), seconds_of(ours, theirs)
                note = f" [{strides:.1f} s, NumPy {numpys:.2f} s: {slowest(theirs, ours)}]" * (
                    strides > SLOW * numpys + 1
                )
                name = str(program.relative_to(root))
                first = " ".join(problems[0][1].split())[:160] if problems else ""
                print(f"{outcome:9} {name}: {first}{note}", flush=True)
                records.append({"program": name, "outcome": outcome, "numpy": numpys, "stride": strides,
                                "problems": problems, "statements": len(ours["records"])})  # fmt: skip
                if options.json:
                    options.json.write_text(json.dumps(records, indent=1))
    finally:
        daemon.stop()
    judged = sum(outcomes.values()) - outcomes["skipped"] - outcomes["excluded"]
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print(f"{100 * outcomes['works'] / max(judged, 1):.1f} % of {judged} work")
    return 0 if outcomes["works"] == judged else 1


if __name__ == "__main__":
    sys.exit(main())
