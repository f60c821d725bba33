"""Bulk bytes: arrays in chunks, large ones as several calls at once, each with its own range."""

from typing import Callable, List, Optional, Tuple

import grpc
import numpy as np

from stride import _errors
from stride.v1 import array_pb2, array_service_pb2 as pb, array_service_pb2_grpc

CHUNK_BYTES = 1 << 20
# Below this a second call costs more than it brings.
_MIN_PART_BYTES = 8 << 20

# Called with bytes moved so far and bytes in all, in a thread of the pool.
Progress = Callable[[int, int], None]


def cut_ranges(size: int, max_parts: int) -> List[Tuple[int, int]]:
    parts = max(1, min(max_parts, size // _MIN_PART_BYTES))
    step = -(-max(size, 1) // parts)
    step = -(-step // CHUNK_BYTES) * CHUNK_BYTES
    return [(begin, min(size, begin + step)) for begin in range(0, size, step)] or [(0, 0)]


class _Count:
    def __init__(self, total: int, progress: Optional[Progress]):
        self._total, self._progress, self._done = total, progress, 0

    def add(self, amount: int) -> None:
        self._done += amount
        if self._progress is not None:
            self._progress(self._done, self._total)


def _each_part(channels, pool, size, move) -> None:
    """Calls move(stub, begin, end) for every part, the first in this thread."""
    ranges = cut_ranges(size, channels.num_bulk)
    stubs = [array_service_pb2_grpc.ArrayServiceStub(channels.bulk(i)) for i in range(len(ranges))]
    others = [pool.submit(move, stub, *part) for stub, part in zip(stubs[1:], ranges[1:])]
    try:
        move(stubs[0], *ranges[0])
        for other in others:
            other.result()
    except grpc.RpcError as error:
        raise _errors.from_rpc(error) from None


def put(channels, pool, parent: str, array_id: str, spec: array_pb2.ArraySpec, values: np.ndarray, *, device: str = "",
        overwrite: bool = False, progress: Optional[Progress] = None, timeout: Optional[float] = None,
        sharding: Optional[array_pb2.Sharding] = None) -> None:
    """Uploads C-contiguous `values`, which must not change until this returns."""
    view = memoryview(values.reshape(-1).view(np.uint8)) if values.size else memoryview(b"")
    count = _Count(len(view), progress)

    def messages(begin, end):
        header = pb.PutArrayRequest.Header(parent=parent, array_id=array_id, spec=spec, device=device, overwrite=overwrite,
                                           sharding=sharding)
        if (begin, end) != (0, len(view)):
            header.range.CopyFrom(array_pb2.ByteRange(begin=begin, end=end))
        yield pb.PutArrayRequest(header=header)
        for at in range(begin, end, CHUNK_BYTES):
            chunk = bytes(view[at:min(end, at + CHUNK_BYTES)])
            yield pb.PutArrayRequest(data=chunk)
            count.add(len(chunk))

    _each_part(channels, pool, len(view), lambda stub, begin, end: stub.PutArray(messages(begin, end), timeout=timeout))


def fetch(channels, pool, name: str, dtype: np.dtype, shape: Tuple[int, ...], *, progress: Optional[Progress] = None,
          timeout: Optional[float] = None) -> np.ndarray:
    """Downloads an array whose type and shape are known, in C order; waits until it is ready."""
    values = np.empty(shape, dtype)
    target = memoryview(values.reshape(-1).view(np.uint8)) if values.size else memoryview(b"")
    count = _Count(len(target), progress)

    def move(stub, begin, end):
        request = pb.FetchArrayRequest(name=name, chunk_bytes=CHUNK_BYTES)
        if (begin, end) != (0, len(target)):
            request.range.CopyFrom(array_pb2.ByteRange(begin=begin, end=end))
        at = begin
        for reply in stub.FetchArray(request, timeout=timeout):
            data = reply.data
            if data:
                target[at:at + len(data)] = data
                at += len(data)
                count.add(len(data))
        if at != end:
            raise _errors.DataLoss(f"The daemon sent {at - begin} bytes of {end - begin} of {name}")

    _each_part(channels, pool, len(target), move)
    return values
