"""`jax.example_libraries`: the small network and optimiser libraries that JAX's examples use."""

from stride.jax.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]
