"""A plugin of pytest: imports NumPy's test modules with `stride` in NumPy's place, applies the rules, ends a test at
its time limit, and writes one line of JSON for each test.

STRIDE_SUITE_RESULTS is the file to append to; STRIDE_SUITE_SECONDS the limit of a test; STRIDE_SUITE_DONE a file with
the tests not to run again, one in a line."""

import ast
import json
import os
import signal
import sys
import traceback
import types

import pytest

import numpy_rules
import numpy_substitute

_PACKAGE = os.path.dirname(numpy_substitute.numpy.__file__)
_seconds = int(os.environ.get("STRIDE_SUITE_SECONDS", "60"))


class TimeLimit(BaseException):
    """No `except Exception` of a test catches it."""


def _note(**record) -> None:
    with open(os.environ["STRIDE_SUITE_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


class NumpyModule(pytest.Module):
    def _getobj(self):
        path = str(self.path)
        parts = os.path.relpath(path, os.path.dirname(_PACKAGE))[: -len(".py")].split(os.sep)
        module = types.ModuleType(".".join(parts))
        module.__file__ = path
        module.__package__ = ".".join(parts[:-1])
        module.__dict__["__builtins__"] = numpy_substitute.namespace()
        sys.modules[module.__name__] = module
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
        # One statement at a time: a failure (parameters of a missing type) does not affect the others.
        for statement in tree.body:
            code = compile(ast.Module([statement], []), path, "exec", dont_inherit=True)
            try:
                exec(code, module.__dict__)  # noqa: S102
            except Exception as error:  # noqa: BLE001
                numpy_substitute.uses.reached = True
                reason = numpy_rules.after(error, numpy_substitute.uses)
                record = {"outcome": "excluded", "reason": reason} if reason else {"outcome": "error"}
                _note(id=f"{_id(path)}:{statement.lineno}", error=_last_line(error), where=_where(error), **record)
        return module


def pytest_pycollect_makemodule(module_path, parent):
    if str(module_path).startswith(_PACKAGE) and module_path.name.startswith("test_"):
        return NumpyModule.from_parent(parent, path=module_path)
    return None


def _id(nodeid: str) -> str:
    """From the folder within NumPy's package on."""
    return nodeid.split("numpy/", 1)[-1]


def pytest_collectreport(report):
    if report.failed:
        text = str(report.longrepr)[-1500:]
        reason = numpy_rules.of_error(text)
        record = {"outcome": "excluded", "reason": reason} if reason else {"outcome": "error"}
        _note(id=_id(report.nodeid), error=text, **record)


def pytest_collection_modifyitems(items):
    done = set()
    if os.environ.get("STRIDE_SUITE_DONE"):
        with open(os.environ["STRIDE_SUITE_DONE"], encoding="utf-8") as file:
            done = set(file.read().splitlines())
    kept = []
    for item in items:
        item.stride_id = _id(item.nodeid)
        if item.stride_id in done:
            continue
        reason = numpy_rules.before(item)
        if reason is None:
            kept.append(item)
        else:
            _note(id=item.stride_id, outcome="excluded", reason=reason)
    items[:] = kept


def _at_limit(*_):
    raise TimeLimit(f"the test took more than {_seconds} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    numpy_substitute.uses.collecting = False
    _note(id=item.stride_id, outcome="started")
    numpy_substitute.uses.reset()
    numpy_substitute.uses.reached = numpy_rules.calls_imported(item)
    before = signal.signal(signal.SIGALRM, _at_limit)
    signal.alarm(_seconds)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    uses = numpy_substitute.uses
    if report.outcome == "failed":
        error = call.excinfo.value
        reason = numpy_rules.after(error, uses)
        record = {"outcome": "excluded", "reason": reason} if reason else {"outcome": "failed", "when": call.when}
        _note(id=item.stride_id, error=_last_line(error), where=_where(error), **record)
    elif report.outcome == "skipped":
        _note(id=item.stride_id, outcome="skipped", error=str(call.excinfo.value) if call.excinfo else "")
    elif call.when == "call":
        if uses.reached:
            _note(id=item.stride_id, outcome="passed")
        else:
            _note(id=item.stride_id, outcome="excluded", reason=numpy_rules.HOST_ONLY)
    return report


def _last_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()[:600]


def _where(error: BaseException) -> str:
    """The last line of the suite in the traceback, and the last of the client."""
    found = {}
    for frame in traceback.extract_tb(error.__traceback__):
        part = "suite" if "/tests/test_" in frame.filename else "stride" if "/stride/" in frame.filename else None
        if part:
            found[part] = f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}"
    return " | ".join(found[part] for part in ("suite", "stride") if part in found)
