"""CuPy's `fft`: stride.fft, whatever it has, and `config`, whose settings have no effect: plans are the daemon's."""

import warnings
from typing import Any

from stride import fft as _own


class PlanCache:
    """The plans of transforms are the daemon's: this cache is empty, and its settings have no effect."""

    def get_size(self) -> int:
        """0."""
        return 0

    def set_size(self, size: int) -> None:
        """Does nothing."""

    def get_memsize(self) -> int:
        """0."""
        return 0

    def set_memsize(self, size: int) -> None:
        """Does nothing."""

    def get_curr_size(self) -> int:
        """0."""
        return 0

    def get_curr_memsize(self) -> int:
        """0."""
        return 0

    def clear(self) -> None:
        """Does nothing."""

    def show_info(self) -> None:
        """Prints that the plans are the daemon's."""
        print("plans of transforms are the daemon's; this cache is empty")


class Config:
    """CuPy's settings of transforms. They are kept and have no effect.

    Example
        >>> import stride.cupy as cp
        >>> cp.fft.config.enable_nd_planning
        True
    """

    use_multi_gpus = False

    def __init__(self) -> None:
        self._cache, self._planning = PlanCache(), True

    @property
    def enable_nd_planning(self) -> bool:
        """Whether one plan is made for several axes. Deprecated in CuPy, which warns as well.

        Example
            >>> import stride.cupy as cp
            >>> import warnings
            >>> with warnings.catch_warnings():
            ...     warnings.simplefilter("ignore")
            ...     cp.fft.config.enable_nd_planning
            ...
            ...
            True
        """
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning, stacklevel=2)
        return self._planning

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning, stacklevel=2)
        self._planning = value

    def get_plan_cache(self) -> PlanCache:
        """A cache without plans.

        Returns
            A PlanCache.
        Example
            >>> import stride.cupy as cp
            >>> cp.fft.config.get_plan_cache().get_size()
            0
        """
        return self._cache

    def set_plan_cache_size(self, size: int) -> None:
        """Does nothing: plans are the daemon's.

        Parameters
            size: accepted.
        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.fft.config.set_plan_cache_size(8)
        """

    def show_plan_cache_info(self) -> None:
        """Prints that the plans are the daemon's.

        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.fft.config.show_plan_cache_info()
            plans of transforms are the daemon's; this cache is empty
        """
        self._cache.show_info()

    def clear_plan_cache(self) -> None:
        """Does nothing: plans are the daemon's.

        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.fft.config.clear_plan_cache()
        """

    def set_cufft_callbacks(self, *_: Any, **__: Any):
        """Refused: apply the function before or after the transform, with which it fuses.

        Returns
            Nothing: it raises.
        Raises
            Unimplemented.
        Example
            >>> import stride.cupy as cp
            >>> try:
            ...     cp.fft.config.set_cufft_callbacks()
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        from stride._execution import refused

        refused("fft.config.set_cufft_callbacks", "apply the function before or after the transform")


config = Config()


def __getattr__(name: str):
    if not name.startswith("_") and hasattr(_own, name):
        return getattr(_own, name)
    from stride.cupy import _names

    raise AttributeError(_names.missing_in("fft", name))


__all__ = [*_own.__all__, "config"]


def __dir__():
    return list(__all__)
