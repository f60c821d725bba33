"""The time of one call, and of many calls after one another."""

from bench.peers.workload import Rows

ONE_CALL, MANY_CALLS = Rows(), Rows()


def few(s):
    return [s.floats(20_000)]  # fewer may stay on the host


@ONE_CALL.row("call", "x+x of 20,000 f32", few, is_call=True, on_host=True, tolerance=None)
def call(lib, x):
    return x + x


@ONE_CALL.row(
    "call_number", "sum of 20,000 f32 to a number", few, is_call=True, on_host=True, number=True, tolerance=None
)
def call_number(lib, x):
    return lib.xp.sum(x)


@MANY_CALLS.row(
    "launch", "launch of a CUDA kernel on 1,000 f32", lambda s: [s.floats(1000)], in_a_row=True, tolerance=None
)
def launch(lib, x):
    if not hasattr(lib, "launcher"):
        lib.launcher = lib.kernel()
    return lib.launcher(x)


@MANY_CALLS.row(
    "held_small", "2,000 sums of 1,000 f32, all held", lambda s: [s.floats(1000), s.floats(1000)], eager=True
)
def held_small(lib, x, y):
    return [x + y for _ in range(2000)]


@MANY_CALLS.row(
    "chain",
    "1,000 additions, each of the last one's result, 1,000 f32",
    lambda s: [s.floats(1000), s.floats(1000)],
    tolerance=1e-3,
    eager=True,
)
def chain(lib, x, y):
    for _ in range(1000):
        x = lib.xp.add(x, y)
    return x
