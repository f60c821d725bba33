"""Random numbers that a loop draws one by one, read many at a time."""

from typing import Any, Callable, Dict, Tuple

import numpy as np

from stride._array import Array
from stride._elements import number_of
from stride._session import current_session

# A call belongs to a loop if the last one of its kind was at most so many blocks ago: loops draw several kinds.
_NEAR = 16
# Numbers of the first round trip; each further one has four times as many, up to the last.
_FIRST, _LAST = 64, 4096
# Kinds that are remembered: a loop whose parameters change has ever new ones.
_MAX_KINDS = 64


class _Kind:
    """What is known of calls of one distribution, parameters and type."""

    def __init__(self, place: int):
        self.last = place
        self.start = 0
        self.values: list = []  # Python's numbers


def _as_it_is(value: Any) -> Any:
    return value


class ReadAhead:
    """Serves numbers without axes to one generator. A number depends on the block that it reads alone, so that those
    that are read ahead are what each call would have made, and none is lost when the state is changed.

    The first call of a kind makes its number on the device as any other; the second one makes the next ones as well and
    reads all in one round trip, which the calls after it find on the host."""

    def __init__(self) -> None:
        self._kinds: Dict[tuple, _Kind] = {}

    def known(self, kind: tuple, state: Tuple[int, int, int]) -> Any:
        """The value that `make` of `number` has made for `state`; None where there is none."""
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
