"""JAX's `lax`: control flow, and the functions that promote nothing.

    final, history = stride.lax.scan(step, start, inputs)

Control flow is in `_control.py`, elementwise functions, reductions and products in `_operators.py`, shapes and slices
in `_shapes.py`. Functions that the service does not have are AttributeErrors that say so."""

from stride.lax import _control, _operators, _shapes
from stride.lax._control import *  # noqa: F401,F403
from stride.lax._operators import *  # noqa: F401,F403
from stride.lax._shapes import *  # noqa: F401,F403

__all__ = [*_control.__all__, *_operators.__all__, *_shapes.__all__]

_COLLECTIVE = (
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
)


def __getattr__(name: str):
    """Raises an error with the alternative."""
    if name in _COLLECTIVE:
        raise AttributeError(
            f"stride.lax has no {name}: there are no named axes; reduce over the mapped axis after vmap, or use a "
            f"sharded array (stride.Sharding)"
        )
    raise AttributeError(f"stride.lax has no {name}; stride's own namespace has NumPy's functions")
