"""Cooperative groups: `cuda.cg.this_grid().sync()` in a kernel makes its launch cooperative, so that all blocks run at
once and may meet.

A grid too large for that is refused by the service with the number of blocks that would fit."""

from stride.cuda._intrinsics import this_grid

__all__ = ["this_grid"]
