"""Bulk bytes: large arrays as several calls at once, each with its own range; through memory shared with the daemon where that can be had
and pays, else in chunks inside messages."""

import functools
import math
from collections import deque
from concurrent.futures import wait
from typing import Callable, Optional, Tuple

import grpc
import numpy as np

from stride import _errors, _shared
from stride._callers import CHUNK_BYTES, Crew, cut_ranges
from stride.v1 import array_pb2, array_service_pb2 as pb, array_service_pb2_grpc, region_service_pb2

# Below this a second call costs more than it brings, where bytes travel in messages.
_MIN_PART_BYTES = 8 << 20
# No upload call through a region moves more: each thread has a part of the region, and makes its calls one after the other.
_PUT_PART_BYTES = 64 << 20
# No download call through a region moves less of a larger array.
_LEAST_PART_BYTES = 4 << 20
# What one message tells of: copied out, by either side, while the next comes; or nothing to do about it.
_BOUNCE_CHUNK_BYTES = 4 << 20
_IN_PLACE_CHUNK_BYTES = 16 << 20
# Each thread's downloads take turns with two parts of the region, so that one comes while the other is copied out.
_PARTS_OF_FETCH = 2

# Called with bytes moved so far and bytes in all, in any thread.
Progress = Callable[[int, int], None]


class _Count:
    def __init__(self, total: int, progress: Optional[Progress]):
        self._total, self._progress, self._done = total, progress, 0

    def add(self, amount: int) -> None:
        self._done += amount
        if self._progress is not None:
            self._progress(self._done, self._total)


def _each_part(channels, pool, size, move) -> None:
    """Calls move(stub, begin, end) for every part, the first in this thread."""
    try:
        ranges = cut_ranges(size, channels.num_bulk, _MIN_PART_BYTES)
        stubs = [array_service_pb2_grpc.ArrayServiceStub(channels.bulk(i)) for i in range(len(ranges))]
        _run_parts(pool, Crew(stubs, ranges), lambda stub, _, begin, end: move(stub, begin, end))
    except grpc.RpcError as error:
        raise _errors.from_rpc(error) from None


def _run_parts(pool, crew: Crew, move) -> None:
    """Calls move(caller, index, begin, end) for every part, the first in this thread; returns, or raises the first error, when all have ended."""
    parts = list(zip(crew.callers, crew.ranges))
    others = [pool.submit(move, caller, i, *part) for i, (caller, part) in enumerate(parts) if i > 0]
    try:
        move(parts[0][0], 0, *parts[0][1])
    finally:
        wait(others)
    for other in others:
        other.result()


# --- through a region ---


class _Turns:
    """The calls of one thread, which has `num_parts` parts of the region: begin(at, end, offset) starts one that moves these bytes by way of that
    part, and returns what waits for its end. The next that uses its part begins after that, since nothing else tells that the daemon has done
    with it. After an error nothing is waited for: the region is given up, and connections are."""

    def __init__(self, begin, index: int, part_bytes: int, num_parts: int):
        self._begin, self._index, self._part_bytes, self._num_parts = begin, index, part_bytes, num_parts
        self._ends: deque = deque()

    def run(self, begin: int, end: int) -> None:
        for turn, at in enumerate(range(begin, end, self._part_bytes)):
            if len(self._ends) == self._num_parts:
                self._ends.popleft()()
            part = self._index * self._num_parts + turn % self._num_parts
            self._ends.append(self._begin(at, min(end, at + self._part_bytes), part * self._part_bytes))
        while self._ends:
            self._ends.popleft()()


def _move_in_place(crew: Crew, begin) -> None:
    """One call for each part, begin(caller, at, end), all from this thread: nothing is copied on this side."""
    for finish in [begin(caller, *part) for caller, part in zip(crew.callers, crew.ranges)]:
        finish()


def _part_bytes(ranges, region_bytes: int, num_parts: int) -> int:
    largest = max(1, max(end - begin for begin, end in ranges))
    room = region_bytes // (len(ranges) * num_parts)
    share = -(-largest // num_parts)
    return max(CHUNK_BYTES, min(max(-(-share // CHUNK_BYTES) * CHUNK_BYTES, _LEAST_PART_BYTES), room // CHUNK_BYTES * CHUNK_BYTES))


def _bounce_bytes_for_put(ranges) -> int:
    return len(ranges) * min(_PUT_PART_BYTES, max(end - begin for begin, end in ranges))


def _put_shared(crew: Crew, pool, header, source, count, timeout, region, in_place, bounce) -> None:
    common = pb.PutArrayRequest.Header(region=region)
    common.MergeFrom(header)

    def start(caller, at, stop, offset):
        step = max(1, stop - at) if bounce is None else _BOUNCE_CHUNK_BYTES
        steps = range(0, stop - at, step)

        def messages():
            request = pb.PutArrayRequest(header=common)
            request.header.range.begin, request.header.range.end = at, stop
            yield request
            for done in steps:
                until = min(done + step, stop - at)
                if bounce is not None:
                    bounce[offset + done:offset + until] = source[at + done:at + until]  # NumPy lets other threads run meanwhile
                yield pb.PutArrayRequest(chunk=region_service_pb2.RegionRange(offset=offset + done, size=until - done))
                count.add(until - done)

        return caller.put(messages(), 1 + len(steps), timeout)

    if bounce is None:
        _move_in_place(crew, lambda caller, at, stop: start(caller, at, stop, in_place + at))
        return
    size = _part_bytes(crew.ranges, len(bounce), 1)
    _run_parts(pool, crew, lambda caller, index, *part: _Turns(functools.partial(start, caller), index, size, 1).run(*part))


def _fetch_shared(crew: Crew, pool, name, target, count, timeout, region, in_place, bounce) -> None:
    def start(caller, at, stop, offset):
        request = pb.FetchArrayRequest(name=name, region=region, region_offset=offset,
                                       chunk_bytes=_IN_PLACE_CHUNK_BYTES if bounce is None else _BOUNCE_CHUNK_BYTES)
        request.range.begin, request.range.end = at, stop
        replies = caller.fetch(request, timeout)

        def finish():
            to = at
            for reply in replies:
                chunk = reply.chunk
                if not chunk.size:
                    continue
                if chunk.offset != offset + to - at or not 0 < chunk.size <= stop - to:
                    raise _errors.DataLoss(f"The daemon told of bytes of {name} that were not asked for")
                if bounce is not None:
                    target[to:to + chunk.size] = bounce[chunk.offset:chunk.offset + chunk.size]
                to += chunk.size
                count.add(chunk.size)
            if to != stop:
                raise _errors.DataLoss(f"The daemon sent {to - at} bytes of {stop - at} of {name}")

        return finish

    if bounce is None:
        _move_in_place(crew, lambda caller, at, stop: start(caller, at, stop, in_place + at))
        return
    size = _part_bytes(crew.ranges, len(bounce), _PARTS_OF_FETCH)
    _run_parts(pool, crew, lambda caller, index, *part: _Turns(functools.partial(start, caller), index, size, _PARTS_OF_FETCH).run(*part))


# --- either way ---


def put(channels, shared, pool, parent: str, array_id: str, spec: array_pb2.ArraySpec, values: np.ndarray, *, device: str = "",
        overwrite: bool = False, progress: Optional[Progress] = None, timeout: Optional[float] = None,
        sharding: Optional[array_pb2.Sharding] = None) -> None:
    """Uploads C-contiguous `values`, which must not change until this returns."""
    source = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    view = memoryview(source)
    count = _Count(len(view), progress)
    common = pb.PutArrayRequest.Header(parent=parent, array_id=array_id, spec=spec, device=device, overwrite=overwrite, sharding=sharding)
    if shared.use(source, _bounce_bytes_for_put,
                  lambda crew, *region: _put_shared(crew, pool, common, source, count, timeout, *region)):
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

    _each_part(channels, pool, len(view), lambda stub, begin, end: stub.PutArray(messages(begin, end), timeout=timeout))


def fetch(channels, shared, pool, name: str, dtype: np.dtype, shape: Tuple[int, ...], *, progress: Optional[Progress] = None,
          timeout: Optional[float] = None) -> np.ndarray:
    """Downloads an array whose type and shape are known, in C order; waits until it is ready."""
    size = math.prod(shape) * dtype.itemsize
    count = _Count(size, progress)
    loan = shared.receive(size, lambda crew, *region: _fetch_shared(crew, pool, name, None, count, timeout, *region))
    if loan is not None:
        return loan.array(dtype, shape)
    values = np.empty(shape, dtype)
    out = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    target = memoryview(out)
    count = _Count(size, progress)  # anew
    # A call for each part of a view makes the daemon gather the view each time: few calls.
    if shared.use(out, lambda _: min(max(size, _PARTS_OF_FETCH * CHUNK_BYTES), _shared.MAX_BOUNCE_BYTES),
                  lambda crew, *region: _fetch_shared(crew, pool, name, out, count, timeout, *region)):
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

    _each_part(channels, pool, len(target), move)
    return values
