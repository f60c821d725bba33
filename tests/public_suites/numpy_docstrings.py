"""Runs the examples of NumPy's docstrings with `np` as `stride`, and compares their output.

An example counts when its output has a number in it. Outputs agree when their words do and their numbers differ by at
most 1e-6 of their size: spaces, `array(...)` around elements, `dtype=...` of a repr and NumPy's scalar types
(`np.float64(3.0)`) are not compared, since arrays of `stride` have another repr and reductions give arrays
without axes. The same examples run with NumPy itself first: one that prints something else there too (numbers that may
vary, plots that need Matplotlib, old texts) is excluded. Random numbers are excluded too, and types that the service
does not have.
"""

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
    text = re.sub(r"#[^\n]*", "", text).replace("<BLANKLINE>", "")
    text = re.sub(r"(?:,\s*)?(?:dtype|shape)=(?:\([^)]*\)|[\w.<>']+)", "", text)
    text = re.sub(r"\bnp\.(True|False)_?\b", r"\1", text)
    text = re.sub(rf"\b{_TYPE}\(", "(", text)
    numbers = [one.group() for one in _NUMBER.finditer(text)]
    words = re.sub(r"[\s()\[\],]+", "", _NUMBER.sub("#", text))
    return words, [complex(one.lower().replace(" ", "")) for one in numbers]


def _near(one, other):
    for a, b in ((one.real, other.real), (one.imag, other.imag)):
        if (
            a != b
            and not (a != a and b != b)
            and not abs(a - b) <= 1e-6 * max(abs(a), abs(b), abs(one), abs(other)) + 1e-12
        ):
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


NUMPY_DIFFERS = "NumPy itself prints something else than its docstring"
# Reasons why examples of these do not count.
_NAMES = [
    (
        r"^numpy\.(char|strings|rec|ma|matrix|asmatrix|bmat|poly1d|polynomial|memmap|nditer|"
        r"nested_iters|flatiter|record|recarray)",
        numpy_rules.MATRIX,
    )
]
_TEXTS = [(r"\brng\.|\brandom\.|default_rng|np\.random", numpy_rules.BIT_GENERATOR)]


def examples():
    """(name, object) of each public function, class and method of NumPy's main namespaces, once."""
    seen = set()
    for module, prefix in (
        (numpy, "numpy"),
        (numpy.linalg, "numpy.linalg"),
        (numpy.fft, "numpy.fft"),
        (numpy.random, "numpy.random"),
    ):
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
    """The outcome of each example by its number."""

    def __init__(self):
        super().__init__(Checker(), verbose=False)
        self.found = {}

    def report_start(self, out, test, example):
        pass

    def report_success(self, out, test, example, got):
        pass

    def report_failure(self, out, test, example, got):
        self.found[test.examples.index(example)] = ("got " + got[:600], None)

    def report_unexpected_exception(self, out, test, example, exc_info):
        text = f"{exc_info[0].__name__}: {exc_info[1]}"[:600]
        self.found[test.examples.index(example)] = (text, numpy_rules.after(exc_info[1], numpy_substitute.uses))


def _run(test):
    runner = _Runner()
    numpy_substitute.uses.reset()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), numpy.printoptions():
        warnings.simplefilter("ignore")
        runner.run(test, out=lambda _: None)
    return runner.found


def _outcomes(name, text):
    """A record of each example of a docstring that prints a number."""
    parser = doctest.DocTestParser()
    expected = _run(parser.get_doctest(text, {"np": numpy}, name, None, None))
    scope = {"np": numpy_substitute.substitute(numpy), "__builtins__": numpy_substitute.namespace()}
    test = parser.get_doctest(text, scope, name, None, None)
    failures = {} if _excluded_name(name) else _run(test)
    before, refused = "", None
    for i, example in enumerate(test.examples):
        before += example.source
        error, reason = failures.get(i, (None, None))
        # An example that fails because of a type also excludes the examples after it.
        refused = refused or reason
        if not _NUMBER.search(example.want.split("Traceback", 1)[0]) or doctest.SKIP in example.options:
            continue
        reason = (
            _excluded_name(name)
            or (i in expected and NUMPY_DIFFERS)
            or next((why for pattern, why in _TEXTS if re.search(pattern, before)), None)
        )
        if i in failures:
            reason = reason or refused or numpy_rules.of_text(before + example.want)
        record = {"id": f"{name}:{example.lineno}", "file": name, "source": example.source, "want": example.want}
        if reason:
            yield {**record, "outcome": "excluded", "reason": reason}
        else:
            yield {**record, "outcome": "failed" if i in failures else "passed", **({"error": error} if error else {})}


def run():
    return [
        record
        for name, one in examples()
        if ">>>" in (inspect.getdoc(one) or "")
        for record in _outcomes(name, inspect.getdoc(one))
    ]
