"""Which line of the user's program is running."""

import os
import sys

_OURS: set = set()  # the package's files, as they are seen
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def caller():
    """(code object, place in it) of the innermost frame outside this package; cheap, since every recorded operation
    asks. The line is looked up where it is needed (`describe`)."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename not in _OURS:
            if not code.co_filename.startswith(HERE):
                return code, frame.f_lasti
            _OURS.add(code.co_filename)
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
