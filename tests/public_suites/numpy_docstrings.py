"""Runs the examples of NumPy's docstrings with `np` as `stride`, and compares what they print.

An example counts when its output has a number in it. Outputs agree when their words do and their numbers differ by at
most 1e-6 of their size: spaces, `array(...)` around elements, `dtype=...` of a repr and NumPy's scalar types
(`np.float64(3.0)`) are not compared, since arrays of `stride` have a repr of their own and reductions give arrays
without axes. An example that draws numbers without a seed of its own prints other numbers everywhere; those of modules
of random numbers are excluded, as are types that the service does not have."""

import contextlib
import doctest
import inspect
import io
import re
import types
import warnings

import numpy

import numpy_rules
import numpy_substitute

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?j?|[-+]?\b(?:inf|nan)j?\b", re.IGNORECASE)
_TYPE = r"(?:np\.)?(?:array|stride\.Array|float\d+|complex\d+|u?int\d+|bool|intp|uintp|Array)"


def _words(text):
    text = re.sub(r"(?:,\s*)?(?:dtype|shape)=(?:\([^)]*\)|[\w.<>']+)", "", text)
    text = re.sub(r"\bnp\.(True|False)_?\b", r"\1", text)
    text = re.sub(rf"\b{_TYPE}\(", "(", text)
    numbers = [one.group() for one in _NUMBER.finditer(text)]
    words = re.sub(r"[\s()\[\],]+", "", _NUMBER.sub("#", text))
    return words, [complex(one.lower().replace(" ", "")) for one in numbers]


def _near(one, other):
    for a, b in ((one.real, other.real), (one.imag, other.imag)):
        if a != b and not (a != a and b != b) and not abs(a - b) <= 1e-6 * max(abs(a), abs(b), abs(one), abs(other)) + 1e-12:
            return False
    return True


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags | doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
            return True
        if "..." in want and "Traceback" not in want:
            pieces = [re.escape(_words(one)[0]) for one in want.split("...")]
            return re.fullmatch(".*".join(pieces), _words(got)[0], re.DOTALL) is not None
        words, numbers = _words(want)
        other_words, others = _words(got)
        return words == other_words and len(numbers) == len(others) and all(map(_near, numbers, others))


# Why examples of these do not count.
_NAMES = [
    (r"^numpy\.(char|strings|rec|ma|matrix|asmatrix|bmat|poly1d|polynomial|memmap|nditer|nested_iters|flatiter|record|recarray)",
     numpy_rules.MATRIX),
]
_TEXTS = [
    (r"\brng\.|\brandom\.|default_rng|np\.random", numpy_rules.BIT_GENERATOR),
]


def examples():
    """(name, object) of each public function, class and method of NumPy's main namespaces, once."""
    seen = set()
    for module, prefix in ((numpy, "numpy"), (numpy.linalg, "numpy.linalg"), (numpy.fft, "numpy.fft"), (numpy.random, "numpy.random")):
        for name in sorted(module.__all__):
            one = getattr(module, name, None)
            if one is None or isinstance(one, types.ModuleType) or id(one) in seen or not callable(one):
                continue
            seen.add(id(one))
            yield f"{prefix}.{name}", one
            if one in (numpy.ndarray, numpy.random.Generator):
                for method in sorted(vars(one)):
                    if not method.startswith("_"):
                        yield f"{prefix}.{name}.{method}", getattr(one, method)


def _excluded_name(name):
    plain = name.rsplit(".", 1)[-1]
    from stride import _numpy_names

    if plain in _numpy_names.REFUSED and name.count(".") == 1:
        return numpy_rules._of_refusal(plain)
    return next((reason for pattern, reason in _NAMES if re.search(pattern, name)), None)


class _Runner(doctest.DocTestRunner):
    def __init__(self, records):
        super().__init__(Checker(), verbose=False)
        self.records = records
        self.error = None

    def _note(self, test, example, outcome, **more):
        self.records.append({"id": f"{test.name}:{example.lineno}", "file": test.name, "outcome": outcome,
                             "source": example.source, "want": example.want, **more})

    def report_start(self, out, test, example):
        numpy_substitute.uses.refused = set()

    def report_success(self, out, test, example, got):
        self._done(test, example, "passed", {})

    def report_failure(self, out, test, example, got):
        self._done(test, example, "failed", {"error": f"got {got[:600]}"})

    def report_unexpected_exception(self, out, test, example, exc_info):
        reason = numpy_rules.after(exc_info[1], numpy_substitute.uses)
        test.stride_reason = reason or getattr(test, "stride_reason", None)
        self._done(test, example, "failed", {"error": f"{exc_info[0].__name__}: {exc_info[1]}"[:600]})

    def _done(self, test, example, outcome, more):
        if not _NUMBER.search(example.want.split("Traceback", 1)[0]):
            if outcome == "failed" and example.want == "":
                # A statement that fails is counted with the outputs that it costs.
                self.error = more.get("error")
            return
        text = "".join(one.source for one in test.examples[:test.examples.index(example) + 1])
        reason = getattr(test, "stride_reason", None) or next((why for pattern, why in _TEXTS if re.search(pattern, text)), None) \
            or numpy_rules.of_text(example.source + example.want)
        if outcome == "failed" and reason is not None:
            self._note(test, example, "excluded", reason=reason, **more)
        else:
            self._note(test, example, outcome, **more)


def run():
    """A record of each example that prints numbers."""
    records = []
    parser = doctest.DocTestParser()
    module = numpy_substitute.substitute(numpy)
    for name, one in examples():
        text = inspect.getdoc(one) or ""
        if ">>>" not in text:
            continue
        test = parser.get_doctest(text, {"np": module, "__builtins__": numpy_substitute.namespace()}, name, None, None)
        reason = _excluded_name(name)
        if reason is not None:
            for example in test.examples:
                if _NUMBER.search(example.want):
                    records.append({"id": f"{name}:{example.lineno}", "file": name, "outcome": "excluded", "reason": reason})
            continue
        runner = _Runner(records)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), numpy.printoptions():
            warnings.simplefilter("ignore")
            runner.run(test, out=lambda _: None)
    return records
