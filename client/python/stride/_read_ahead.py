"""Random numbers and small random arrays that a loop draws one by one, read in batches."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np

from stride._array import Array
from stride._element_numbers import number_of
from stride._session import current_session

# A call belongs to a loop if the last one of its kind was at most this many blocks ago: loops draw several
# kinds.
_NEAR = 256
# Numbers of the first round trip; each further one has four times as many, up to the last.
_FIRST, _LAST = 64, 4096
# Number of kinds kept: a loop whose parameters change has a new kind in each iteration.
_MAX_KINDS = 64
# Arrays that a loop of the host draws: elements of one of them, and of the longest read.
MAX_ELEMENTS, _MAX_READ = 1024, 1 << 14


class _Kind:
    """State of calls with one distribution, parameters and type."""

    def __init__(self, place: int):
        self.last = place
        self.start = 0
        self.values: list = []  # Python's numbers


def _as_it_is(value: Any) -> Any:
    return value


class _Blocks(NamedTuple):
    """The elements of a distribution that `count` blocks give, from the block `start` on."""

    start: int
    count: int
    values: np.ndarray


class ReadAhead:
    """Serves numbers without axes to one generator. A number depends only on the block that it reads, so that
    numbers read ahead equal those of single calls, and a change of the state loses none.

    The first call of a kind makes its number on the device as usual. The second one also makes the next
    numbers and reads all in one round trip; later calls find them on the host."""

    def __init__(self) -> None:
        self._kinds: Dict[tuple, _Kind] = {}
        self._blocks: Dict[tuple, _Blocks] = {}

    def elements(
        self, kind: tuple, state: Tuple[int, int, int], count: int, in_block: int, make: Callable[[tuple, int], Array]
    ) -> np.ndarray:
        """Elements at `state`, in new memory; each block gives `in_block` of them. `make(state, count)` makes
        elements on the device, including those of the next blocks, which later calls find here."""
        key, place, stream = state
        num_blocks = -(-count // in_block)
        kind = (kind, key, stream)
        known = self._blocks.get(kind)
        if known is None or not known.start <= place <= known.start + known.count - num_blocks:
            if len(self._blocks) >= _MAX_KINDS:
                self._blocks.clear()
            num_read = 16 * num_blocks if known is None else 4 * known.count
            num_read = max(min(num_read, _MAX_READ // in_block), num_blocks)
            values = make(state, num_read * in_block).to_numpy()
            known = self._blocks[kind] = _Blocks(place, num_read, values)
        begin = (place - known.start) * in_block
        return known.values[begin:begin + count].copy()

    def known(self, kind: tuple, state: Tuple[int, int, int]) -> Any:
        """The value that `make` of `number` has made for `state`, or None."""
        key, place, stream = state
        known = self._kinds.get((kind, key, stream))
        if known is None or current_session()._is_trace:
            return None
        i = place - known.start
        if not 0 <= i < len(known.values):
            return None
        known.last = place
        return known.values[i]

    def number(
        self,
        kind: tuple,
        state: Tuple[int, int, int],
        single: Callable[[], Array],
        make: Callable[[tuple, int], Array],
        finish: Callable = _as_it_is,
    ) -> Array:
        """The number at `state` (key, counter, stream), which `single()` makes on the device. `make(state, count)`
        makes what it depends on for each of so many blocks, and `finish` the number of that, as Python's number."""
        session = current_session()
        if session._is_trace:
            return single()
        key, place, stream = state
        kind = (kind, key, stream)
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) >= _MAX_KINDS:
                self._kinds.clear()
            self._kinds[kind] = _Kind(place)
            return single()
        is_near, known.last = 0 <= place - known.last <= _NEAR, place
        if not 0 <= place - known.start < len(known.values):
            if not is_near:
                return single()
            count = min(4 * len(known.values), _LAST) if known.values else _FIRST
            values = make(state, count).to_numpy()
            # Python's integers: words are multiplied by numbers beyond 64 bits.
            known.values, known.start = values.tolist() if values.dtype.kind == "u" else list(values), place
        return number_of(finish(known.values[place - known.start]), session)
