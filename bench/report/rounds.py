"""Turns of several libraries in the same run."""

import time

from bench.report.row import Times

# A block of turns ends with the first of these.
_TURNS_OF_BLOCK = 5
_BLOCK_S = 0.05


def timed(turn):
    begin = time.perf_counter()
    result = turn()
    return time.perf_counter() - begin, result


def measure(turns, repeats, pause_s=0.0, in_a_row=1):
    """Measures in rounds, so that disturbances affect all libraries alike. In each round every library has a
    block of turns; the first turn is not measured, since it has the previous library's caches and clocks.
    `turns` are functions by name; before each block nothing runs for `pause_s`. A turn does its work
    `in_a_row` times: the times are per repetition."""
    times = {name: [] for name in turns}
    for _ in range(repeats):
        for name, turn in turns.items():
            time.sleep(pause_s)
            turn()
            times[name] += _block(turn)
    return {name: Times.of(seconds / in_a_row for seconds in one) for name, one in times.items()}


def _block(turn):
    times = []
    while not times or len(times) < _TURNS_OF_BLOCK and sum(times) < _BLOCK_S:
        elapsed, result = timed(turn)
        del result
        times.append(elapsed)
    return times
