"""pytest's plugin of one process of the suite: the import hook, the rules, a limit for each test, and one line of JSON
for each start and outcome, from which suite.py continues when a process ends early."""

import faulthandler
import inspect
import json
import os
import signal

import pytest

import replaced_imports
import rules

LIMIT = int(os.environ["STRIDE_SUITE_LIMIT"])
RECORD = open(os.environ["STRIDE_SUITE_RECORD"], "a", buffering=1)  # noqa: SIM115: open as long as the process
with open(os.environ["STRIDE_SUITE_DONE"]) as file:
    DONE = set(json.load(file))
replaced_imports.install(os.environ["STRIDE_SUITE"], rules)


def record(**what):
    RECORD.write(json.dumps(what) + "\n")


def _session():
    import stride

    return stride.connect(os.environ["STRIDE_ADDRESS"], timeout=LIMIT)


def pytest_configure(config):
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    config._stride_session = _session()
    config._stride_session.__enter__()
    rules.prepare()


def pytest_unconfigure(config):
    config._stride_session.close()


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
    # The suites' decorators do not always set __wrapped__: the functions in their cells are the test.
    functions = [function, *_wrapped(function, 6)]
    texts = []
    for one in functions:
        if one.__code__ not in _sources:
            try:
                _sources[one.__code__] = inspect.getsource(one.__code__)
            except (OSError, TypeError):
                _sources[one.__code__] = ""
        if "/testing/" not in one.__code__.co_filename:
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
    if replaced_imports.EXCLUDED in text:
        return {"outcome": "excluded", "message": text.split(replaced_imports.EXCLUDED, 1)[1].splitlines()[0]}
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
        if replaced_imports.EXCLUDED in text:  # within a decorator that compares with another library
            reason = text.split(replaced_imports.EXCLUDED, 1)[1].splitlines()[0]
            record(id=report.nodeid, outcome="excluded", message=reason)
        else:
            record(id=report.nodeid, outcome="failed", message=_last(text), text=text[-6000:])
    elif report.when == "call":
        record(id=report.nodeid, outcome="passed", seconds=round(report.duration, 2))
