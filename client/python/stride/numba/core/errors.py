"""Numba's errors, each the one that is raised here in its place, and its warnings, which are never given:
`warnings.simplefilter("ignore", NumbaPerformanceWarning)` runs."""

from stride._errors import CompileError as LoweringError
from stride._errors import ExpressionError as TypingError
from stride._errors import InvalidArgument as NumbaValueError
from stride._errors import StrideError as NumbaError
from stride._errors import Unimplemented as UnsupportedError

# A kernel's text is read, typed and called in one place.
RequireLiteralValue = NumbaTypeError = TypingError


class NumbaWarning(Warning):
    """What Numba's warnings are."""


class NumbaPerformanceWarning(NumbaWarning):
    """Never given."""


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """Never given."""


class NumbaPendingDeprecationWarning(NumbaWarning, PendingDeprecationWarning):
    """Never given."""


class NumbaExperimentalFeatureWarning(NumbaWarning):
    """Never given."""


class NumbaDebugInfoWarning(NumbaWarning):
    """Never given."""


class NumbaInvalidConfigWarning(NumbaWarning):
    """Never given."""


__all__ = [
    "LoweringError",
    "NumbaDebugInfoWarning",
    "NumbaDeprecationWarning",
    "NumbaError",
    "NumbaExperimentalFeatureWarning",
    "NumbaInvalidConfigWarning",
    "NumbaPendingDeprecationWarning",
    "NumbaPerformanceWarning",
    "NumbaTypeError",
    "NumbaValueError",
    "NumbaWarning",
    "RequireLiteralValue",
    "TypingError",
    "UnsupportedError",
]
