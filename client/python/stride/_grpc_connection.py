"""A connection for commands to any daemon: one Execute call of gRPC."""

import queue
from typing import Optional

from stride import _errors
from stride.v1 import compute_service_pb2


class GrpcConnection:
    """As LocalConnection, except that a thread of gRPC writes its messages, and a dedicated thread always
    reads: gRPC cannot stop waiting for an answer."""

    transport = "grpc"
    has_own_reader = True

    def __init__(self, stub):
        self.reading = True
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._call = stub.Execute(iter(self._requests.get, None))

    def put(self, message: bytes) -> None:
        self._requests.put(compute_service_pb2.ExecuteRequest.FromString(message))

    def flush(self) -> bool:
        return True

    def has_news(self) -> bool:
        return False  # they are taken at once

    def receive(self, deadline: Optional[float] = None, or_room: bool = False) -> compute_service_pb2.ExecuteResponse:
        response = _errors.call(next, self._call, None)
        if response is None:
            raise _errors.connection_lost("the daemon ended the command stream")
        return response

    def advance(self) -> None:
        pass

    def end(self) -> None:
        self._requests.put(None)
        self._call.cancel()

    def close(self) -> None:
        pass

    def leave_to_parent(self) -> None:
        pass
