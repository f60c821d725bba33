"""`jax.ad_checkpoint`: what a gradient keeps of a function's values. The tape here keeps all of them: names and
policies are accepted, and change neither values nor memory."""

import types
from typing import Any, Callable

from stride.jax._custom_gradients import checkpoint, remat

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]


def checkpoint_name(x: Any, name: str) -> Any:
    """A value with a name, which policies refer to: the value itself.

    Parameters
        x: a pytree.
        name: accepted.
    Returns
        `x`.
    Example
        >>> from stride.jax.ad_checkpoint import checkpoint_name
        >>> checkpoint_name(1.0, "a")
        1.0
    """
    return x


def _kept(*_: Any, **__: Any) -> bool:
    return True


def _of_names(*_: Any, **__: Any) -> Callable:
    return _kept


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=_kept,
    nothing_saveable=_kept,
    dots_saveable=_kept,
    checkpoint_dots=_kept,
    dots_with_no_batch_dims_saveable=_kept,
    checkpoint_dots_with_no_batch_dims=_kept,
    save_any_names_but_these=_of_names,
    save_anything_except_these_names=_of_names,
    save_only_these_names=_of_names,
    save_from_both_policies=_of_names,
)
