"""Connections: one for control, some for bulk bytes, with the credentials that the caller gave."""

import json
import os
import threading
from typing import List, Optional

import grpc

from stride._address import is_local, is_unix
from stride._errors import InvalidArgument

# Retries calls that are idempotent or carry a request id, and only if the daemon reports that it did not
# accept them.
_RETRIED = [
    {"service": "stride.v1.DeviceService"},
    {"service": "stride.v1.ArrayService", "method": "GetArray"},
    {"service": "stride.v1.ArrayService", "method": "ListArrays"},
    {"service": "stride.v1.SessionService", "method": "GetSession"},
    {"service": "stride.v1.SessionService", "method": "RenewSession"},
]
_SERVICE_CONFIG = json.dumps({
    "methodConfig": [{"name": _RETRIED, "retryPolicy": {
        "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"]}}],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
})
# The contract caps messages at 4 MiB of data; this leaves room for what surrounds it.
_MAX_RECEIVE_BYTES = 16 << 20


class _Bearer(grpc.AuthMetadataPlugin):
    def __init__(self, token: str):
        self._metadata = (("authorization", "Bearer " + token),)

    def __call__(self, context, callback):
        callback(self._metadata, None)


def _read(path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def make_credentials(target: str, token: Optional[str], tls_ca: Optional[str], tls_cert: Optional[str],
                     tls_key: Optional[str]) -> Optional[grpc.ChannelCredentials]:
    """None: plain. `tls_ca` is a PEM file or `system`. A token is never sent unencrypted to another machine."""
    token = token or os.environ.get("STRIDE_TOKEN") or ""
    if any(not 0x20 < ord(c) < 0x7F for c in token):
        raise InvalidArgument("The token has characters that no token has")
    if (tls_cert is None) != (tls_key is None):
        raise InvalidArgument("A client certificate and its key belong together")
    if tls_ca is not None:
        roots = None if tls_ca == "system" else _read(tls_ca)
        channel = grpc.ssl_channel_credentials(roots, _read(tls_key), _read(tls_cert))
    elif tls_cert is not None:
        raise InvalidArgument("A client certificate needs TLS: set the authority of the daemon's (tls_ca)")
    elif not token:
        return None
    elif is_local(target):
        kind = grpc.LocalConnectionType.UDS if is_unix(target) else grpc.LocalConnectionType.LOCAL_TCP
        channel = grpc.local_channel_credentials(kind)
    else:
        raise InvalidArgument(
            f"The token would travel to {target} unencrypted; use TLS (tls_ca), or leave the token away"
        )
    if token:
        channel = grpc.composite_channel_credentials(
            channel, grpc.metadata_call_credentials(_Bearer(token), "stride-token")
        )
    return channel


class Channels:
    """Thread-safe. The bulk connections are opened by their first use."""

    def __init__(
        self, target: str, credentials: Optional[grpc.ChannelCredentials], server_name: Optional[str], num_bulk: int
    ):
        self._target, self._credentials, self._server_name = target, credentials, server_name
        self._lock = threading.Lock()
        self._bulk: List[Optional[grpc.Channel]] = [None] * num_bulk
        self.control = self._open()

    def _open(self) -> grpc.Channel:
        options = [
            # Channels to one address would otherwise share one connection.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", _MAX_RECEIVE_BYTES),
            ("grpc.service_config", _SERVICE_CONFIG),
            # A daemon that restarts is back in less than a second.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.min_reconnect_backoff_ms", 5000),
            # The daemon is named on purpose; a proxy from the environment cannot reach its socket.
            ("grpc.enable_http_proxy", 0),
        ]
        if self._server_name:
            options.append(("grpc.ssl_target_name_override", self._server_name))
        if self._credentials is None:
            return grpc.insecure_channel(self._target, options)
        return grpc.secure_channel(self._target, self._credentials, options)

    @property
    def target(self) -> str:
        return self._target

    @property
    def num_bulk(self) -> int:
        return len(self._bulk)

    def bulk(self, index: int) -> grpc.Channel:
        index %= len(self._bulk)
        with self._lock:
            channel = self._bulk[index]
            if channel is None:
                channel = self._bulk[index] = self._open()
            return channel

    def close(self) -> None:
        with self._lock:
            for channel in (self.control, *self._bulk):
                if channel is not None:
                    channel.close()
            self._bulk = [None] * len(self._bulk)
