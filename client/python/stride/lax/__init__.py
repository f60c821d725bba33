"""JAX's `lax`: control flow, and the functions that promote nothing.

    final, history = stride.lax.scan(step, start, inputs)

Each module has one duty, which its first line says. Functions that the service does not have are AttributeErrors that
say so."""

from stride.lax import _branches, _control, _operators, _products, _reductions, _scans, _shapes, _slices
from stride.lax._branches import *  # noqa: F401,F403
from stride.lax._control import *  # noqa: F401,F403
from stride.lax._operators import *  # noqa: F401,F403
from stride.lax._products import *  # noqa: F401,F403
from stride.lax._reductions import *  # noqa: F401,F403
from stride.lax._scans import *  # noqa: F401,F403
from stride.lax._shapes import *  # noqa: F401,F403
from stride.lax._slices import *  # noqa: F401,F403

__all__ = [
    *_branches.__all__, *_control.__all__, *_operators.__all__, *_products.__all__,
    *_reductions.__all__, *_scans.__all__, *_shapes.__all__, *_slices.__all__,
]

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
