"""Explains why a daemon cannot be reached: each cause has its own sentence, the same as the C++ client's."""

import errno
import grp
import os
import re
import socket
from typing import Optional

import grpc

from stride import _address, _errors

_PROBE_SECONDS = 2.0
# A TLS 1.2 record with a ClientHello that asks for h2: a TLS server answers it with a record of its own. The random
# field of the ClientHello is a readable text.
_CLIENT_HELLO = (
    bytes.fromhex("1603010068010000640303")
    + b"stride asks whether this is TLS."
    + bytes.fromhex(
        "00000cc02bc02cc02fc030cca9cca80100002f000a00080006001d00170018000b00020100000d0010000e04030503060308040805"
        "04010501001000050003026832"
    )
)


def _path(target: str) -> str:
    path = target[len("unix:"):]
    return path[2:] if path.startswith("//") else path


def _connect_unix(path: str) -> int:
    """0, or the errno of an attempt to connect."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.setblocking(False)
        try:
            return tried.connect_ex(path)
        except OSError as error:  # a path that is too long
            return error.errno or errno.ENAMETOOLONG


def _group(path: str) -> str:
    """The group whose members may use the socket: the socket's group, or else its folder's."""
    for one in (path, os.path.dirname(path)):
        try:
            group = os.stat(one).st_gid
            return grp.getgrgid(group).gr_name if group else ""
        except (OSError, KeyError):
            continue
    return ""


def refused(target: str) -> Optional[_errors.StrideError]:
    """The error that only an administrator can resolve: this user may not open the Unix socket."""
    if not _address.is_unix(target):
        return None
    path = _path(target)
    if _connect_unix(path) not in (errno.EACCES, errno.EPERM):
        return None
    group = _group(path)
    return _errors.PermissionDenied(f"This user may not open the daemon's socket {path}; "
                                    + (f"it is for members of the group {group}" if group else "ask its administrator"))


def why_unreachable(
    address: str, target: str, tls_ca: Optional[str], tls_cert: Optional[str], channel: grpc.Channel
) -> _errors.StrideError:
    """Probes the address after a channel did not become ready in time."""
    return _errors.Unavailable(f"No daemon answers at {address}: {_why(target, tls_ca, tls_cert, channel)}")


def _why(target: str, tls_ca: Optional[str], tls_cert: Optional[str], channel: grpc.Channel) -> str:
    silent = "it takes connections and does not answer"
    if _address.is_unix(target):
        path = _path(target)
        error = _connect_unix(path)
        if error == errno.ENOENT:
            return f"there is no socket {path}; start strided"
        if error == errno.ECONNREFUSED:
            return f"nothing listens on the socket {path}; start strided"
        return os.strerror(error) if error else silent
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS) as tried:
            speaks_tls = _speaks_tls(tried)
    except socket.gaierror as error:
        return f"the name {host} leads to no address: {error.strerror}"
    except ConnectionRefusedError:
        return "nothing listens there; start strided, or mend the address"
    except OSError as error:
        return error.strerror or f"no connection within {_PROBE_SECONDS:g} s"
    if tls_ca is None:
        return (
            "the daemon speaks TLS there; set the authority of its certificate (tls_ca, --tls-ca)"
            if speaks_tls
            else silent
        )
    if not speaks_tls:
        return "the server there speaks no TLS; leave out tls_ca (--tls-ca)"
    return _why_no_handshake(tls_ca, tls_cert, _last_error(channel))


def _speaks_tls(tried: socket.socket) -> bool:
    try:
        tried.sendall(_CLIENT_HELLO)
        first = tried.recv(2)
    except OSError:
        return False
    return first in (b"\x15\x03", b"\x16\x03")  # an alert, a handshake


def _last_error(channel: grpc.Channel) -> str:
    """gRPC's own description of its last attempt."""
    from stride.v1 import device_service_pb2, device_service_pb2_grpc

    try:
        device_service_pb2_grpc.DeviceServiceStub(channel).ListDevices(
            device_service_pb2.ListDevicesRequest(), timeout=_PROBE_SECONDS
        )
    except grpc.RpcError as error:
        return error.details() or ""
    return ""


def _why_no_handshake(tls_ca: str, tls_cert: Optional[str], last: str) -> str:
    if re.search("certificate.verify.failed", last, re.IGNORECASE):
        return f"its certificate is not trusted: it is not signed by {tls_ca}, or not for this name"
    if re.search("hostname verification|peer name|is not in peer", last, re.IGNORECASE):
        return "its certificate is for another name; name it by tls_server_name"
    hint = "" if tls_cert else " (a daemon may ask for a client certificate: give its files, tls_cert and tls_key)"
    return f"the TLS handshake fails{hint}: {last}" if last else f"the TLS handshake fails{hint}"
