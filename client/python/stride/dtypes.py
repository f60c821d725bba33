"""NumPy's classes of element types."""

from numpy.dtypes import *  # noqa: F401,F403
from numpy.dtypes import __all__  # noqa: F401
