"""JAX's module over the service's arrays: `from stride import jax` and `import stride.jax.numpy as jnp`."""
from stride.jax._array import Array
from stride.jax._config import config, enable_x64
from stride.jax._gradients import *
from stride.jax import numpy
