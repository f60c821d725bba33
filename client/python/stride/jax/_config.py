"""`jax.config`: the options that have a meaning here."""

import contextlib
import os
from typing import Any, Dict, Iterator

import numpy as np

# Accepted, since programs set them, and without effect: how JAX compiles, checks and prints.
_IGNORED = (
    "jax_check_tracer_leaks",
    "jax_compilation_cache_dir",
    "jax_debug_infs",
    "jax_default_matmul_precision",
    "jax_disable_jit",
    "jax_log_compiles",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_platform_name",
    "jax_platforms",
    "jax_threefry_partitionable",
    "jax_traceback_filtering",
)


class Config:
    """Options by attribute: `jax_enable_x64` is whether numbers and defaults are of 64 bits; others that JAX has are
    kept and change nothing, but for `jax_debug_nans=True`, which is refused.

    Example
        >>> from stride import jax
        >>> jax.config.jax_enable_x64
        False
    """

    def __init__(self):
        self._values: Dict[str, Any] = {"jax_enable_x64": os.environ.get("JAX_ENABLE_X64", "") in ("1", "true", "True")}

    def update(self, name: str, value: Any) -> None:
        """Sets an option.

        Parameters
            name: its name.
            value: its value.
        Returns
            None.
        Raises
            AttributeError for a name that JAX does not have or that has no meaning here.
        Example
            >>> from stride import jax
            >>> jax.config.update("jax_enable_x64", False)
        """
        if name == "jax_debug_nans" and not value:
            return
        if name != "jax_enable_x64" and name not in _IGNORED:
            raise AttributeError(f"stride.jax.config has no option {name}")
        if name in ("jax_threefry_partitionable",) and not value:
            raise AttributeError("stride.jax.random has the numbers of jax_threefry_partitionable=True alone")
        if name == "jax_disable_jit" and value:
            raise AttributeError("stride.jax has no jax_disable_jit=True: call the function without jit")
        self._values[name] = bool(value) if name == "jax_enable_x64" else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values or name in _IGNORED:
            return self._values.get(name)
        raise AttributeError(f"stride.jax.config has no option {name}")


config = Config()


@contextlib.contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Within it numbers and defaults are of 64 bits.

    Parameters
        new_val: False for 32 bits.
    Returns
        A context manager.
    Example
        >>> from stride import jax
        >>> with jax.enable_x64():
        ...     print(jax.numpy.ones(2).dtype)
        ...
        float64
    """
    before = config.jax_enable_x64
    config.update("jax_enable_x64", new_val)
    try:
        yield
    finally:
        config.update("jax_enable_x64", before)


_NARROW = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


def canonical(dtype: Any) -> np.dtype:
    """A type, of 32 bits unless 64 are enabled."""
    dtype = np.dtype(dtype)
    return dtype if config.jax_enable_x64 else _NARROW.get(dtype, dtype)


def default_float() -> np.dtype:
    return canonical(np.float64)
