"""All rows, in the order in which they run; each file of `rows` has those of one kind."""

from bench.peers.rows import (
    calls,
    elements,
    indices,
    linear_algebra,
    moves,
    order,
    products,
    random_numbers,
    reductions,
    scans,
    transforms,
)

ROWS = [
    *calls.ONE_CALL,
    *elements.ROWS,
    *reductions.ROWS,
    *order.ROWS,
    *scans.ROWS,
    *indices.ROWS,
    *moves.ROWS,
    *random_numbers.ROWS,
    *transforms.ROWS,
    *products.ROWS,
    *linear_algebra.ROWS,
    *calls.MANY_CALLS,
]
