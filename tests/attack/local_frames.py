"""Local connections of the attacks, frame by frame."""

import array
import os
import socket
import struct

import grpc
import stubs
from google.rpc import status_pb2

RUN, EXECUTE, EXECUTE_END, STATUS, OPEN, CREATE_REGION, MAP_ARRAY = 1, 2, 3, 4, 8, 9, 10


class LocalError(Exception):
    """The status that ended a call over a local connection."""

    def __init__(self, status):
        super().__init__(status.message)
        self.code = next(code for code in grpc.StatusCode if code.value[0] == status.code)


def frame(kind, message=b"", timeout=0, size=None):
    return struct.pack("<IIQ", len(message) if size is None else size, kind, timeout) + message


def open_local(stub, metadata, seconds=10):
    """A local connection of the caller. `stub`: of LocalService."""
    invited = stub.Connect(stubs.module("local_service_pb2").ConnectRequest(), metadata=metadata, timeout=60)
    connection = admit(invited.socket_path, invited.ticket, seconds)
    if connection is None:
        raise AssertionError("the daemon did not accept its ticket")
    return connection


def admit(path, ticket, seconds=10):
    """A local connection for the ticket, or None."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    connection.connect(path)
    try:
        connection.sendall(frame(OPEN, ticket))
        if receive(connection) == (OPEN, b""):
            return connection
    except (BrokenPipeError, ConnectionResetError):
        pass
    connection.close()
    return None


def receive(connection, descriptors=None):
    """Kind and message, or None at the end."""
    header = receive_bytes(connection, 16, descriptors)
    if header is None:
        return None
    size, kind, _ = struct.unpack("<IIQ", header)
    return kind, receive_bytes(connection, size, descriptors)


def receive_bytes(connection, size, descriptors=None):
    parts = []
    while size:
        try:
            part, ancillary, _, _ = connection.recvmsg(size, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return None
        for _, _, data in ancillary:
            received = array.array("i", data)
            if descriptors is None:
                for descriptor in received:
                    os.close(descriptor)
            else:
                descriptors.extend(received)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def share(connection, kind, request, answer):
    """Calls for memory: parses the answer, and returns the memory's descriptor and its pin, a socket."""
    connection.sendall(frame(kind, request.SerializeToString()))
    descriptors = []
    come, message = receive(connection, descriptors)
    if come == STATUS:
        raise LocalError(status_pb2.Status.FromString(message))
    answer.ParseFromString(message)
    return descriptors[0], socket.socket(fileno=descriptors[1])
