"""A long template in parts that each can be a program of the service.

A part passes arrays that it made to later parts that read them. It passes no views (each part that reads a
view makes it again), and no array that is written later, since a program may write only arrays that it
made."""

from typing import Dict, List, NamedTuple, Optional, Tuple

from stride.v1 import operation_pb2 as pb


class _Uses(NamedTuple):
    """Handles that the operations make, read and write, by the operations' places."""

    made: Dict[int, int]  # handle: the operation that makes it
    reads: List[List[int]]  # handles that each operation reads or writes
    views: Dict[int, int]  # handle of a view -> handle of its base
    writes: Dict[int, int]  # array with views -> the last operation that writes it


def _uses(operations: List[pb.Operation]) -> _Uses:
    from stride._trace import at, handles_in

    made: Dict[int, int] = {}
    views: Dict[int, int] = {}
    writes: Dict[int, int] = {}
    reads: List[List[int]] = []
    for place, operation in enumerate(operations):
        read = []
        is_launch = operation.HasField("kernel_launch")
        for path, handle in handles_in(operation):
            part = at(operation, path)
            if isinstance(part, pb.Output) and not part.existing:
                made[handle] = place
                continue
            read.append(handle)
            if is_launch or isinstance(part, pb.Output):
                writes[_base(views, handle)] = place
        if operation.HasField("view"):
            views[operation.outputs[0].handle] = operation.view.input.handle
        reads.append(read)
    return _Uses(made, reads, views, writes)


def _base(views: Dict[int, int], handle: int) -> int:
    while handle in views:
        handle = views[handle]
    return handle


def _chain(uses: _Uses, handle: int, begin: int) -> List[int]:
    """The chain of views made before `begin` that leads to `handle`, from the view of an array on."""
    found: List[int] = []
    while handle in uses.views and uses.made[handle] < begin:
        found.append(handle)
        handle = uses.views[handle]
    return found[::-1]


def parted(
    operations: List[pb.Operation], outputs: List[int], max_operations: int, max_inputs: int, max_outputs: int
) -> Optional[List[Tuple[List[pb.Operation], List[int], List[int]]]]:
    """(operations, inputs, outputs) of each part, with the template's handles; None if it cannot be cut."""
    uses = _uses(operations)
    end = len(operations)
    last_read: Dict[int, int] = {}
    for place, read in enumerate(uses.reads):
        for handle in read:
            for one in (handle, _base(uses.views, handle)):
                last_read[one] = place
    for handle in outputs:
        last_read[handle] = end
        if handle in uses.views:
            return None
    is_cut = _cuts(uses, last_read, end, max_outputs)
    parts = []
    begin = 0
    while begin < end:
        part = None
        for cut in range(min(end, begin + max_operations), begin, -1):
            if cut == end or is_cut[cut]:
                part = _between(operations, uses, last_read, begin, cut)
                if len(part[0]) <= max_operations and len(part[1]) <= max_inputs and len(part[2]) <= max_outputs:
                    break
                part = None
        if part is None:
            return None
        parts.append(part)
        begin = cut
    return parts


def _cuts(uses: _Uses, last_read: Dict[int, int], end: int, max_outputs: int) -> List[bool]:
    """The operations before which a part may end: live arrays are few, and are not written later."""
    change = [0] * (end + 1)
    blocked = [0] * (end + 1)
    for handle, place in uses.made.items():
        if handle in uses.views:
            continue
        change[min(place + 1, end)] += 1
        change[min(max(last_read.get(handle, place), place) + 1, end)] -= 1
        written = uses.writes.get(handle, place)
        if written > place:
            blocked[min(place + 1, end)] += 1
            blocked[min(written + 1, end)] -= 1
    result, alive, barred = [], 0, 0
    for place in range(end + 1):
        alive += change[place]
        barred += blocked[place]
        result.append(alive <= max_outputs and not barred)
    return result


def _between(operations, uses: _Uses, last_read: Dict[int, int], begin: int, cut: int):
    """A part: the views that it needs of earlier ones, then its operations."""
    again: List[int] = []
    known = set()
    inputs: List[int] = []
    for place in range(begin, cut):
        for handle in uses.reads[place]:
            if uses.made.get(handle, -1) >= begin:
                continue
            for view in _chain(uses, handle, begin):
                if view not in known:
                    known.add(view)
                    again.append(view)
            base = _base(uses.views, handle)
            if base not in known and uses.made.get(base, -1) < begin:
                known.add(base)
                inputs.append(base)
    made = [
        handle
        for handle, place in uses.made.items()
        if begin <= place < cut and handle not in uses.views and last_read.get(handle, -1) >= cut
    ]
    return [operations[uses.made[one]] for one in again] + operations[begin:cut], inputs, made
