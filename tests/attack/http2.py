"""HTTP/2 frames made by hand (RFC 9113), so that wrong ones can be made, and a socket that says them."""

import re
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value, prefix_bits, first=0):
    """HPACK's variable-length integer."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    out = [first | limit]
    value -= limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def field(name, value):
    """A literal header that goes into no table."""
    name, value = (part if isinstance(part, bytes) else part.encode() for part in (name, value))
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def request_headers(path, extra=(), **replaced):
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost", "te": "trailers",
              "content-type": "application/grpc", "stride-tenant": "evil"}
    fields.update({key.replace("_", "-"): value for key, value in replaced.items()})
    return b"".join(field(*pair) for pair in [*fields.items(), *extra] if pair[1] is not None)


def message(payload, compressed=0, length=None):
    """gRPC's length-prefixed message, whose length may lie."""
    return struct.pack(">BI", compressed, len(payload) if length is None else length) + payload


def call(stream, path, body, extra=(), end=True, **replaced):
    """A whole request. The body goes in frames of at most 16 KiB, as every peer takes them."""
    out = frame(HEADERS, END_HEADERS, stream, request_headers(path, extra, **replaced))
    pieces = [body[i:i + 16384] for i in range(0, len(body), 16384)] or [b""]
    for i, piece in enumerate(pieces):
        out += frame(DATA, END_STREAM if end and i + 1 == len(pieces) else 0, stream, piece)
    return out


class Connection:
    """To a TCP port or the path of a Unix socket; with `tls` (an ssl.SSLContext) encrypted."""

    def __init__(self, target, hello=True, timeout=5, tls=None):
        if isinstance(target, int):
            self.socket = socket.create_connection(("127.0.0.1", target), timeout=timeout)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(target)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        if hello:
            self.send(PREFACE + frame(SETTINGS, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """False once the daemon has hung up or takes no more."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def read(self, seconds=1.0, until=None):
        """The bytes received within the time, or until the pattern `until`."""
        data, end = b"", time.monotonic() + seconds
        while time.monotonic() < end and not (until and re.search(until, data, re.DOTALL)):
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                piece = self.socket.recv(1 << 16)
            except TimeoutError:
                break
            except OSError:
                return data
            if not piece:
                break
            data += piece
        return data

    def status(self, seconds=3.0):
        """grpc-status of the connection's first answered call (its header is not in the table yet); None: none came."""
        found = re.search(rb"grpc-status[\x01\x02](\d+)", self.read(seconds, rb"grpc-status[\x01\x02]\d+"))
        return int(found.group(1)) if found else None

    def closed(self, seconds=3.0):
        """Whether the daemon closes the connection within the time. Discards received bytes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
        return False
