"""File descriptors that the daemon hands out for tickets: of regions, and of local connections."""

import os
import socket
from typing import Tuple

_SECONDS = 2.0


def fetch_descriptor(target: str, path: str, ticket: bytes) -> Tuple[int, socket.socket]:
    """Exchanges a ticket at the socket `path` of the daemon at `target` for a file descriptor. Returns the
    descriptor and its connection. Raises OSError."""
    try:
        return _receive(path, ticket)
    except (FileNotFoundError, ConnectionRefusedError):
        # The daemon's path of the socket may not exist here: in another container the socket is in the folder
        # of the one for calls.
        folder = os.path.dirname(target[len("unix:"):])
        return _receive(os.path.join(folder, os.path.basename(path)), ticket)


def _receive(path: str, ticket: bytes) -> Tuple[int, socket.socket]:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(_SECONDS)
        connection.connect(path)
        connection.send(ticket)
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1, socket.MSG_CMSG_CLOEXEC)
        if len(descriptors) != 1:
            raise OSError("the daemon did not hand out what the ticket is for")
    except BaseException:
        connection.close()
        raise
    return descriptors[0], connection
