"""Text that kernels print with printf: the daemon keeps it for the session, and reads of results write it to
sys.stdout."""

import sys
from typing import Any, Union

import grpc

from stride.v1 import session_service_pb2

_FATBIN = b"\x50\xed\x55\xba"  # its first bytes; its code may be compressed

_expected = False  # whether some code of this process may print


def note_code(code: Union[str, bytes]) -> None:
    """Checks whether code of kernels may print. Other sessions have no cost."""
    global _expected
    if isinstance(code, str):
        _expected = _expected or "printf" in code
    else:
        _expected = _expected or code[:4] == _FATBIN or b"vprintf" in code


def expect() -> None:
    """Assumes that unknown code may print."""
    global _expected
    _expected = True


def show(session: Any) -> None:
    """Writes what launches of the session that have ended printed, to sys.stdout. Does nothing where no code prints."""
    if not _expected or session._is_trace or session.closed:
        return
    request = session_service_pb2.ReadPrintedRequest(name=session.name)
    more = True
    while more:
        try:
            answer = session._sessions.ReadPrinted(request, timeout=5)
        except grpc.RpcError:
            return  # a result that was read must not be lost for a text
        more = answer.more
        if answer.text:
            sys.stdout.write(answer.text.decode("utf-8", "replace"))
        if answer.dropped_lines:
            sys.stdout.write(f"[stride: {answer.dropped_lines} lines dropped]\n")
