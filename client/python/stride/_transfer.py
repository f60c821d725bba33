"""Transfers of bulk bytes. A large array takes several concurrent calls, each with its own range: through
memory shared with the daemon where that is available and pays, else in chunks inside messages."""

import math
from typing import Callable, Optional, Tuple

import numpy as np

from stride import _errors
from stride._callers import CHUNK_BYTES, Crew, cut_into, cut_ranges, deadline_of, share_of
from stride.v1 import array_pb2, array_service_pb2 as pb, array_service_pb2_grpc

# Below this size a second call costs more than it saves, where bytes travel in messages.
_MIN_PART_BYTES = 8 << 20
# Bytes per message: one side copies a message out while the next one arrives.
_BOUNCE_CHUNK_BYTES = 4 << 20
_IN_PLACE_CHUNK_BYTES = 16 << 20
# Least bytes of a download call through a region, for larger arrays.
_LEAST_FETCH_BYTES = 4 << 20
# Calls per thread, so that one arrives while the other is copied out. Few, because the daemon gathers a view
# once for each call.
_FETCHES_OF_THREAD = 2

# Called in any thread with the bytes moved so far and the total.
Progress = Callable[[int, int], None]


class _Count:
    def __init__(self, total: int, progress: Optional[Progress]):
        self._total, self._progress, self._done = total, progress, 0

    def add(self, amount: int) -> None:
        self._done += amount
        if self._progress is not None:
            self._progress(self._done, self._total)


def _each_part(channels, helpers, size, move) -> None:
    """Calls move(stub, begin, end) for every part, in this thread and others."""
    def work(stub, parts):
        for begin, end in parts:
            move(stub, begin, end)

    ranges = cut_ranges(size, channels.num_bulk, _MIN_PART_BYTES)
    _errors.call(
        helpers.run,
        work,
        [array_service_pb2_grpc.ArrayServiceStub(channels.bulk(i)) for i in range(len(ranges))],
        ranges,
    )


# --- through a region ---
#
# A call moves bytes between one range of the array and as many in the region. A copy through a region uses it
# in rounds; within a round each part has its own place. After an error the transfer waits for its threads
# only, and abandons the region and the connections.


def _put_shared(crew: Crew, helpers, header, source, count, timeout, region, in_place, bounce) -> None:
    first, second = pb.PutArrayRequest(header=header), pb.PutArrayRequest()
    first.header.region = region
    of_array, of_region, make = first.header.range, second.chunk, crew.callers[0].upload

    def upload(begin, end, offset):
        of_array.begin, of_array.end = begin, end
        of_region.offset, of_region.size = offset, end - begin
        return make(first, second, timeout)

    if bounce is None:
        deadline = deadline_of(timeout)
        for caller, (begin, end) in zip(crew.callers, crew.ranges):
            caller.put(upload(begin, end, in_place + begin), deadline)
        for caller, (begin, end) in zip(crew.callers, crew.ranges):
            caller.finish(deadline)
            count.add(end - begin)
        return

    def copy_in(caller, parts):
        # NumPy releases the interpreter's lock while it copies. There is little other work, so that threads
        # rarely wait for each other.
        for begin, end, offset, ready in parts:
            bounce[offset:offset + end - begin] = source[begin:end]
            caller.put(ready, deadline)
            count.add(end - begin)

    for base, until in cut_into(0, len(source), len(bounce)):
        parts = cut_into(base, until, crew.upload_bytes(len(source)))
        deadline = deadline_of(timeout)
        helpers.run(
            copy_in,
            crew.callers,
            [(begin, end, begin - base, upload(begin, end, begin - base)) for begin, end in parts],
        )
        for caller in crew.callers:
            caller.finish(deadline)


def _fetch_shared(crew: Crew, helpers, name, target, count, timeout, region, in_place, bounce) -> None:
    def start(caller, begin, end, offset):
        request = pb.FetchArrayRequest(name=name, region=region, region_offset=offset,
                                       chunk_bytes=_IN_PLACE_CHUNK_BYTES if bounce is None else _BOUNCE_CHUNK_BYTES)
        request.range.begin, request.range.end = begin, end
        replies = caller.fetch(request, timeout)

        def finish():
            to = begin
            for reply in replies:
                chunk = reply.chunk
                if not chunk.size:
                    continue
                if chunk.offset != offset + to - begin or not 0 < chunk.size <= end - to:
                    raise _errors.DataLoss(f"The daemon reported bytes of {name} that were not requested")
                if bounce is not None:
                    target[to:to + chunk.size] = bounce[chunk.offset:chunk.offset + chunk.size]
                to += chunk.size
                count.add(chunk.size)
            if to != end:
                raise _errors.DataLoss(f"The daemon sent {to - begin} bytes of {end - begin} of {name}")

        return finish

    if bounce is None:
        for finish in [
            start(caller, begin, end, in_place + begin) for caller, (begin, end) in zip(crew.callers, crew.ranges)
        ]:
            finish()
        return

    def copy_out(caller, parts):
        finish = None
        for begin, end, offset in parts:
            following = start(caller, begin, end, offset)
            if finish is not None:
                finish()
            finish = following
        if finish is not None:
            finish()

    for base, until in cut_into(0, len(target), len(bounce)):
        step = max(_LEAST_FETCH_BYTES, share_of(until - base, _FETCHES_OF_THREAD * len(crew.callers), CHUNK_BYTES))
        helpers.run(copy_out, crew.callers, [(begin, end, begin - base) for begin, end in cut_into(base, until, step)])


# --- either way ---


def put(
    channels, shared, helpers, parent: str, array_id: str, spec: array_pb2.ArraySpec, values: np.ndarray, *,
    device: str = "", overwrite: bool = False, progress: Optional[Progress] = None,
    timeout: Optional[float] = None, sharding: Optional[array_pb2.Sharding] = None,
) -> None:
    """Uploads C-contiguous `values`, which must not change until this returns."""
    source = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    view = memoryview(source)
    count = _Count(len(view), progress)
    common = pb.PutArrayRequest.Header(
        parent=parent, array_id=array_id, spec=spec, device=device, overwrite=overwrite, sharding=sharding
    )
    if shared.use(source, lambda crew, *region: _put_shared(crew, helpers, common, source, count, timeout, *region)):
        return

    def messages(begin, end):
        header = pb.PutArrayRequest.Header()
        header.CopyFrom(common)
        if (begin, end) != (0, len(view)):
            header.range.CopyFrom(array_pb2.ByteRange(begin=begin, end=end))
        yield pb.PutArrayRequest(header=header)
        for at in range(begin, end, CHUNK_BYTES):
            chunk = bytes(view[at:min(end, at + CHUNK_BYTES)])
            yield pb.PutArrayRequest(data=chunk)
            count.add(len(chunk))

    _each_part(
        channels, helpers, len(view), lambda stub, begin, end: stub.PutArray(messages(begin, end), timeout=timeout)
    )


def fetch(
    channels, shared, helpers, name: str, dtype: np.dtype, shape: Tuple[int, ...], *,
    progress: Optional[Progress] = None, timeout: Optional[float] = None,
) -> np.ndarray:
    """Downloads an array whose type and shape are known, in C order; waits until it is ready."""
    size = math.prod(shape) * dtype.itemsize
    count = _Count(size, progress)
    loan = shared.receive(size, lambda crew, *region: _fetch_shared(crew, helpers, name, None, count, timeout, *region))
    if loan is not None:
        return loan.array(dtype, shape)
    values = np.empty(shape, dtype)
    out = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    target = memoryview(out)
    count = _Count(size, progress)  # starts again from 0
    if shared.use(out, lambda crew, *region: _fetch_shared(crew, helpers, name, out, count, timeout, *region)):
        return values

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

    _each_part(channels, helpers, len(target), move)
    return values
