"""Which line of the user's program is running."""

import os
import sys
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def caller():
    """(code object, line) of the innermost frame outside this package; cheap, since every recorded operation asks."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lineno)


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
            line = f"{one[0].co_filename}:{one[1]}"
            if line not in lines:
                lines.append(line)
    return ", ".join(lines[:5]) + (f" and {len(lines) - 5} more" if len(lines) > 5 else "")
