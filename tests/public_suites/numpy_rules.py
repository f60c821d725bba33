"""Exclusions from NumPy's suite, with reasons: one table.

Difficulty is never a reason. A rule names a type or a part of NumPy that the service does not have by design,
or a test of NumPy's internals. Rules of files, names, sources and parameters apply before a test runs; rules of errors
apply to a test that failed because the client refused such a type."""

import inspect
import re
from typing import Any, List, NamedTuple, Optional

import numpy

OBJECT = "object elements"
STRING = "string elements"
DATE = "datetime elements"
STRUCTURED = "structured elements and records"
WIDE = "long double"
MASKED = "masked arrays"
MATRIX = "matrix and poly1d classes"
SUBCLASS = "subclasses of arrays and foreign protocols"
INSIDES = "C internals of NumPy"
MEMORY = "addresses and memory of the host (ctypes, buffers, overlap, byte order, strides of one's own)"
ITERATOR = "nditer and flatiter objects"
FILES = "text files and formats beside .npy and .npz"
BIT_GENERATOR = "numbers of a named bit generator"
ENVIRONMENT = "compilers, processes and other tools"
DEPRECATED = "deprecations of NumPy's own"
HOST_ONLY = "works on the host alone (types, scalars, texts)"


class Rule(NamedTuple):
    kind: str  # "file", "name" (file::class::test), "source" (text of the test), "error" (of a failed test)
    pattern: str
    reason: str
    within: str = ""  # for a source or name: a part of the file's path


RULES: List[Rule] = [
    # --- whole files ---
    Rule("file", r"test_(datetime)\.py", DATE),
    Rule("file", r"test_(defchararray|strings|stringdtype|unicode|_natype)\.py", STRING),
    Rule("file", r"test_(records|recfunctions)\.py", STRUCTURED),
    Rule("file", r"test_(longdouble)\.py", WIDE),
    Rule(
        "file",
        r"_core/tests/test_(simd|simd_module|cpu_features|cpu_dispatcher|mem_policy|argparse|extint128|hashtable|"
        r"arraymethod|limited_api|cython|custom_dtypes|casting_unittests|conversion_utils)\.py",
        INSIDES,
    ),
    Rule("file", r"_core/tests/test_(overrides|protocols|scalarinherit)\.py", SUBCLASS),
    Rule("file", r"_core/tests/test_(nditer)\.py", ITERATOR),
    Rule("file", r"_core/tests/test_(memmap|scalarbuffer|array_interface)\.py", MEMORY),
    Rule("file", r"_core/tests/test_(deprecations)\.py|linalg/tests/test_deprecations\.py", DEPRECATED),
    Rule("file", r"_core/tests/test_(multiprocessing)\.py", ENVIRONMENT),
    Rule(
        "file",
        r"_core/tests/test_(abc|print|scalarprint|scalar_ctors|scalar_methods|numerictypes|getlimits|finfo)\.py",
        HOST_ONLY,
    ),
    Rule("file", r"lib/tests/test_(_datasource|_iotools|_version|utils)\.py", INSIDES),
    Rule("file", r"lib/tests/test_(arrayterator)\.py", ITERATOR),
    Rule("file", r"lib/tests/test_(mixins)\.py", SUBCLASS),
    Rule("file", r"random/tests/test_(extending)\.py", ENVIRONMENT),
    Rule("file", r"random/tests/test_(direct|seed_sequence)\.py", BIT_GENERATOR),
    # --- tests of one thing by name ---
    Rule("name", r"[Ss]tructured|[Rr]ecarray|[Rr]ecord", STRUCTURED),
    Rule("name", r"[Mm]asked", MASKED),
    Rule("name", r"[Ss]ubclass|_subok", SUBCLASS),
    Rule("name", r"[Rr]efcount|_leak|TestTextSignatures|TestUFuncInspectSignature|TestSizeOf", INSIDES),
    Rule("name", r"byteorder|byte_order|byteswap|endian", MEMORY),
    Rule(
        "name",
        r"TestRandomDist|TestMultinomial::test_(p_zero|zero_prob)?$|TestSetState|TestSeed\b|TestSeeds|TestJump",
        BIT_GENERATOR,
        "random/",
    ),
    # --- tests that need a type or a part by their text ---
    Rule(
        "source",
        r"dtype=object|dtype=['\"]O['\"]|np\.object_|\bobject\)|astype\(['\"]O|['\"]O['\"]\)|\bobject\]",
        OBJECT,
    ),
    Rule(
        "source",
        r"dtype=['\"][<>=|]?[SU]\d*['\"]|dtype=(str|bytes)\b|np\.(str_|bytes_|char|strings|character)\b|"
        r"astype\((str|bytes|['\"][SU])|StringDType|['\"][<>|]?[SU]\d+['\"]",
        STRING,
    ),
    Rule("source", r"datetime64|timedelta64|['\"][<>]?[mM]8|isnat|busday", DATE),
    Rule(
        "source",
        r"dtype=\[\(|np\.void\b|recarray|np\.rec\b|\[\(['\"]\w*['\"], ?|dtype=['\"][\w<>]+,|'names':",
        STRUCTURED,
    ),
    Rule("source", r"longdouble|longcomplex|float128|complex256|np\.typecodes\[['\"]All", WIDE),
    Rule("source", r"np\.ma\b|\bma\.|MaskedArray|masked_array", MASKED),
    Rule("source", r"np\.(matrix|asmatrix|mat|bmat|poly1d)\b|poly1d\(|\bmatrix\(|\bmat\(", MATRIX),
    Rule(
        "source",
        r"\((np\.)?ndarray\):|__array_(ufunc|function|wrap|finalize|priority|prepare)__|subok|SubClass|[sS]ubclass|"
        r"MyArr|MyNDArray|__array__\b",
        SUBCLASS,
    ),
    Rule(
        "source",
        r"_resolve_dtypes_and_context|__text_signature__|_multiarray_tests|\bmt\.|_umath_tests"
        r"|\bumt\.|getrefcount|HAS_REFCOUNT|rational\b|"
        r"_get_castingimpl|"
        r"__array_struct__|sys\.getrefcount|opflag_tests|_testing\b|np\._core\._|internal_overlap|_no_tracing",
        INSIDES,
    ),
    Rule(
        "source",
        r"ctypes|memoryview|\.__array_interface__|as_strided|np\.memmap|WRITEBACKIFCOPY|\.data\b|buffer\(|PickleBuffer",
        MEMORY,
    ),
    Rule("source", r"nditer|flatiter|np\.broadcast\(|nested_iters", ITERATOR),
    Rule("source", r"genfromtxt|fromregex|recfrom(csv|txt)|ndfromtxt", FILES),
    Rule("source", r"subprocess|sys\.executable|numpy\.distutils|extbuild", ENVIRONMENT),
    # Matrices of numbers that RandomState(128) draws.
    Rule("source", r"_create_data\(\)[\s\S]*tgt = np\.array", BIT_GENERATOR, "test_multiarray.py::TestDot"),
    Rule(
        "source",
        r"desired\s*=\s*(np\.array\(|\[|[-(\d.]|int\()|sha256|md5|hashlib|expected\s*=\s*np\.array\(\[[-\d. ]+[,\d]|"
        r"expected\s*=\s*-?\d+\.?\d*\b|_mt19937|get_state|set_state|legacy",
        BIT_GENERATOR,
        "random/",
    ),
    # --- tests that failed since the client refused a type ---
    Rule("error", r"no element type object", OBJECT),
    Rule("error", r"no element type [<>|=]?[SU]\d*\b|no element type StringD", STRING),
    Rule("error", r"no element type (datetime|timedelta|[<>]?[mM]8)", DATE),
    Rule("error", r"no element type (\[\(|\{|[<>|]?V|\(\()", STRUCTURED),
    Rule("error", r"no element type (float128|complex256)", WIDE),
    Rule("error", r"view of another class|keeps subclasses", SUBCLASS),
    Rule("error", r"[Mm]asked arrays?", MASKED),
]


def _compiled(kind: str):
    return [(re.compile(rule.pattern), rule) for rule in RULES if rule.kind == kind]


def _first(rules: Any, text: str, path: str) -> Optional[str]:
    return next((rule.reason for pattern, rule in rules if rule.within in path and pattern.search(text)), None)


_FILES, _NAMES, _SOURCES, _ERRORS = map(_compiled, ("file", "name", "source", "error"))


def of_file(path: str) -> Optional[str]:
    return _first(_FILES, path, path)


def before(item: Any) -> Optional[str]:
    """The reason not to run a test."""
    return _first(_NAMES, item.stride_id.split("[")[0], item.stride_id) or _of_source(item) or _of_parameters(item)


def _source(item: Any) -> str:
    function = inspect.unwrap(getattr(item.function, "__func__", item.function))
    function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _of_source(item: Any) -> Optional[str]:
    # Decorators list parameters, each of which is checked separately.
    text = _source(item)
    begin = text.find("def ")
    text = text[max(begin, 0) :]
    return _first(_SOURCES, text, item.stride_id)


def of_text(text: str) -> Optional[str]:
    """The reason by those rules of sources that concern types."""
    return _first([(pattern, rule) for pattern, rule in _SOURCES if rule.reason in _TYPES], text, "")


_TYPES = (OBJECT, STRING, DATE, STRUCTURED, WIDE, MASKED, MATRIX)
_KINDS = {"O": OBJECT, "S": STRING, "U": STRING, "T": STRING, "M": DATE, "m": DATE, "V": STRUCTURED}


def of_type(value: Any) -> Optional[str]:
    """Why the service does not have a type, given the type or an array of it."""
    if isinstance(value, numpy.ndarray) or isinstance(value, numpy.generic):
        value = value.dtype
    if value is object:
        return OBJECT
    if value is str or value is bytes:
        return STRING
    if isinstance(value, type) and issubclass(value, numpy.ma.MaskedArray):
        return MASKED
    if isinstance(value, type) and issubclass(value, numpy.ndarray) and value is not numpy.ndarray:
        return SUBCLASS
    if isinstance(value, type) and issubclass(value, numpy.dtype):
        value = value.type
    if isinstance(value, type) and issubclass(value, numpy.generic):
        value = numpy.dtype(value) if value not in (numpy.generic, numpy.flexible, numpy.character) else None
    if isinstance(value, numpy.dtype):
        if not value.isnative and value.kind in "iufc":
            return MEMORY
        if value.kind in _KINDS:
            return _KINDS[value.kind]
        if value.type in (numpy.longdouble, numpy.clongdouble):
            return WIDE
    return None


_CODES = {"O": OBJECT, "g": WIDE, "G": WIDE, "S": STRING, "U": STRING, "M": DATE, "m": DATE, "V": STRUCTURED}
# The other byte order than this machine's.
_OTHER_ORDER = re.compile(r"^>[iufc]\d+$")
_TEXTS = re.compile(
    r"^[<>=|]?([MmSUV]8?(\[\w+\])?|[SUV]\d*|O|object|str|longdouble|clongdouble|timedelta64|datetime64)$"
)


def _of_parameters(item: Any) -> Optional[str]:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    for name, value in callspec.params.items():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            reason = of_type(one)
            if isinstance(one, str) and _OTHER_ORDER.match(one):
                return MEMORY
            if reason is None and isinstance(one, str) and re.search(r"d?type|code|char|^dt\d?$|^typ", name):
                if _TEXTS.match(one) or one in _CODES:
                    code = _TEXTS.match(one).group(1)[0] if _TEXTS.match(one) else one
                    reason = {"o": OBJECT, "s": STRING, "l": WIDE, "c": WIDE, "t": DATE, "d": DATE}.get(
                        code
                    ) or _CODES.get(code)
            if reason is not None:
                return reason
    return None


def calls_imported(item: Any) -> bool:
    """Whether the test calls by its bare name what its module imported from `stride`."""
    function = inspect.unwrap(getattr(item.function, "__func__", item.function))
    code = getattr(function, "__code__", None)
    scope = getattr(function, "__globals__", {})
    names = code.co_names if code is not None else ()
    return any(
        (getattr(scope.get(name), "__module__", None) or "").startswith("stride.")
        and "testing" not in scope[name].__module__
        for name in names
    )


def of_error(text: str) -> Optional[str]:
    return _first(_ERRORS, text, "")


def after(error: BaseException, uses: Any) -> Optional[str]:
    """The reason why a failed test does not count: the client refused a type that the service does not have."""
    text = ""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text += f"{type(error).__name__}: {error}\n"
        error = error.__cause__ or error.__context__
    return of_error(text) or next(iter(sorted(map(_of_refusal, uses.refused))), None)


# Names that the client refuses and that a failed test took from NumPy.
_REFUSALS = [
    (r"object", OBJECT),
    (r"str|bytes|char|flexible", STRING),
    (r"date|busday|isnat|timedelta", DATE),
    (r"void|rec|fromregex", STRUCTURED),
    (r"long|float128|complex256", WIDE),
    (r"^ma$", MASKED),
    (r"matrix|bmat|poly1d|polynomial", MATRIX),
    (r"iter", ITERATOR),
    (r"ctypes|memmap", MEMORY),
]


def _of_refusal(name: str) -> Optional[str]:
    return next((reason for pattern, reason in _REFUSALS if re.search(pattern, name)), None) or INSIDES


# Causes of failures by their texts; the first that fits. They stay failures.
CAUSES = [
    (
        r"DID NOT WARN|FloatingPointError|floating point .* error",
        "no warnings and errors of floating-point numbers (each needs a read)",
    ),
    (
        r"isinstance\(.*np\.(integer|int_|float64|generic)|isscalar|type\((vals|out|res|actual|linalg\.det)"
        r"|class 'stride\._array\.Array'",
        "arrays without axes where NumPy gives scalars",
    ),
    (r"stride\.Array\(|_repr|repr\(", "the repr of arrays"),
    (r"f_contiguous|F_CONTIGUOUS|c_contiguous|fortran|strides|owndata", "the order of elements in memory"),
    (r"read-only|WRITEABLE", "views of another type and parts of complex numbers are for reading"),
    (r"has no attribute|unexpected keyword|positional argument", "a name or keyword that is not there"),
    (r"TimeLimit|the process ended", "the time limit"),
]


def cause(record: Any) -> str:
    text = f"{record.get('error', '')} | {record.get('where', '')}"
    return next((name for pattern, name in CAUSES if re.search(pattern, text)), "others")
