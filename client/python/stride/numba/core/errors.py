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
    """The base of Numba's warnings.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaWarning)
    """


class NumbaPerformanceWarning(NumbaWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaPerformanceWarning)
    """


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaDeprecationWarning)
    """


class NumbaPendingDeprecationWarning(NumbaWarning, PendingDeprecationWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaPendingDeprecationWarning)
    """


class NumbaExperimentalFeatureWarning(NumbaWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaExperimentalFeatureWarning)
    """


class NumbaDebugInfoWarning(NumbaWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaDebugInfoWarning)
    """


class NumbaInvalidConfigWarning(NumbaWarning):
    """Never given.

    Example
        >>> import warnings
        >>> from stride.numba.core import errors
        >>> warnings.simplefilter("ignore", errors.NumbaInvalidConfigWarning)
    """


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
