"""Which line of the user's program is running."""

import os
import sys
import warnings
from typing import Dict

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_is_ours: Dict[str, bool] = {}  # by the name of a file, whether it is this package's
_MAX_FILES = 4096


def caller(depth: int = 2):
    """(code object, place in it) of the innermost frame outside this package; cheap, since every recorded operation
    asks. The line is looked up where it is needed (`describe`). `depth`: the frame to begin at, 1 for that of the
    function which asks. Those before it are this package's: to look at a frame costs more than to skip it."""
    try:
        frame = sys._getframe(depth)
    except ValueError:  # a thread that has begun with a function of this package
        return None
    while frame is not None:
        code = frame.f_code
        ours = _is_ours.get(code.co_filename)
        if ours is None:
            ours = code.co_filename.startswith(HERE)
            if ours or len(_is_ours) < _MAX_FILES:
                _is_ours[code.co_filename] = ours
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _line(code, place: int) -> int:
    import dis

    line = code.co_firstlineno
    for begin, of_it in dis.findlinestarts(code):
        if begin > place:
            break
        line = of_it or line
    return line


def warn(text: str, category: type) -> None:
    """Warns of the innermost line that is neither of this package nor of NumPy."""
    inside = (HERE, np.__path__[0])
    depth, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)


def describe(origin) -> str:
    """`file.py:12` or, of a fused operation, several of them."""
    if not origin:
        return ""
    origins = origin if isinstance(origin, list) else [origin]
    lines = []
    for one in origins:
        if one is not None:
            line = f"{one[0].co_filename}:{_line(*one)}"
            if line not in lines:
                lines.append(line)
    return ", ".join(lines[:5]) + (f" and {len(lines) - 5} more" if len(lines) > 5 else "")
