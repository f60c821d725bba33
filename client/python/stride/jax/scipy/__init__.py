"""`jax.scipy`: special functions, linear algebra and distributions."""

from stride.jax.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
