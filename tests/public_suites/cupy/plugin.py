"""pytest's plugin of one process of the suite: the import hook, the rules, a limit for each test, and one line of JSON
for each start and outcome, from which run.py goes on when a process ends early."""

import faulthandler
import inspect
import json
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import imports  # noqa: E402
import rules  # noqa: E402

SUITE = os.environ["STRIDE_CUPY_SUITE"]
LIMIT = int(os.environ["STRIDE_CUPY_LIMIT"])
RECORD = open(os.environ["STRIDE_CUPY_RECORD"], "a", buffering=1)  # noqa: SIM115: open as long as the process
DONE = set(json.loads(os.environ.get("STRIDE_CUPY_DONE", "[]")))
imports.install(SUITE)


def record(**what):
    RECORD.write(json.dumps(what) + "\n")


def _session():
    import stride

    return stride.connect(os.environ["STRIDE_ADDRESS"], timeout=LIMIT)


def pytest_configure(config):
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    config._stride_session = _session()
    config._stride_session.__enter__()


def pytest_unconfigure(config):
    config._stride_session.close()


def pytest_ignore_collect(collection_path, config):
    """Files that a rule excludes whole are counted by run.py, which does not start a process for them."""
    return None


def pytest_collectreport(report):
    if report.failed:
        record(id=report.nodeid, outcome="failed", message=_last(str(report.longrepr)), text=str(report.longrepr))
    elif report.skipped:
        record(id=report.nodeid, **_skipped(report))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    kept = []
    for item in items:
        if item.nodeid in DONE:
            continue
        reason = rules.excluded(item.nodeid, _source(item))
        if reason is None:
            kept.append(item)
        else:
            record(id=item.nodeid, outcome="excluded", message=reason)
    items[:] = kept
    record(collected=len(items))


_sources = {}


def _source(item):
    function = inspect.unwrap(getattr(item, "function", None)) if hasattr(item, "function") else None
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    # CuPy's decorators do not always set __wrapped__: the functions in their cells are the test.
    functions = [function, *_wrapped(function, 6)]
    texts = []
    for one in functions:
        if one.__code__ not in _sources:
            try:
                _sources[one.__code__] = inspect.getsource(one.__code__)
            except (OSError, TypeError):
                _sources[one.__code__] = ""
        if "cupy/testing" not in one.__code__.co_filename:
            texts.append(_sources[one.__code__])
    return "\n".join(texts)


def _wrapped(function, depth):
    for cell in function.__closure__ or ():
        try:
            inner = cell.cell_contents
        except ValueError:
            continue
        if inspect.isfunction(inner) and depth:
            yield inner
            yield from _wrapped(inner, depth - 1)


def _expired(signum, frame):
    signal.alarm(5)
    pytest.fail(f"runs for more than {LIMIT} s", pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    record(start=item.nodeid)
    signal.signal(signal.SIGALRM, _expired)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)


def _last(text):
    lines = [one for one in text.strip().splitlines() if one.startswith("E ")]
    return (lines[0] if lines else (text.strip().splitlines() or [""])[-1])[:300]


def _skipped(report):
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    text = text.removeprefix("Skipped: ")
    if rules.EXCLUDED in text:
        return {"outcome": "excluded", "message": text.split(rules.EXCLUDED, 1)[1].splitlines()[0]}
    return {"outcome": "skipped", "message": text[:200]}


def pytest_runtest_logreport(report):
    if hasattr(report, "wasxfail"):
        if report.when == "call":
            # The suite's authors expect CuPy to fail: a test that passes here passes.
            record(id=report.nodeid, outcome="passed" if report.passed else "skipped", message="xfail in the suite")
    elif report.skipped:
        record(id=report.nodeid, **_skipped(report))
    elif report.failed:
        text = str(report.longrepr)
        record(id=report.nodeid, outcome="failed", message=_last(text), text=text[-6000:])
    elif report.when == "call":
        record(id=report.nodeid, outcome="passed", seconds=round(report.duration, 2))
