"""Where the daemon is: the same spellings as the command line and the C++ client take."""

import os
import re
import stat
from typing import Optional

from stride._errors import InvalidArgument

_HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^:/\[\]@?#\s]+):([0-9]{1,5})")


def target_of(address: str) -> str:
    """gRPC's target for `unix:/path`, `host:7433`, `[::1]:7433` or `tcp:host:7433`."""
    if address.startswith("unix:"):
        if len(address) == 5:
            raise InvalidArgument("The path of the Unix socket is missing: " + address)
        return address
    rest = address[4:] if address.startswith("tcp:") else address
    match = _HOST_AND_PORT.fullmatch(rest)
    if not match or not 1 <= int(match[2]) <= 65535:
        raise InvalidArgument("Write unix:/path, host:7433, [::1]:7433 or tcp:host:7433, not: " + address)
    return rest


def is_unix(target: str) -> bool:
    return target.startswith("unix")


def is_local(target: str) -> bool:
    return is_unix(target) or target.startswith(("localhost:", "127.", "[::1]:"))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def default_address() -> Optional[str]:
    """STRIDE_ADDRESS, else a socket where a daemon of this user or machine would have put it, else None."""
    given = os.environ.get("STRIDE_ADDRESS")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    places = ([runtime + "/stride.sock"] if runtime else []) + ["/run/stride/stride.sock"]
    return next(("unix:" + place for place in places if _is_socket(place)), None)
