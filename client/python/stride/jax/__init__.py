"""JAX's module over the service's arrays: `from stride import jax` and `import stride.jax.numpy as jnp`.

Arrays are immutable and of 32-bit elements unless `jax_enable_x64` is set, random numbers have JAX's bits, and
functions can be differentiated. `jit`, `vmap` and `lax` are Stride's. A name that is not
there raises AttributeError."""

import sys
from typing import Any

from stride import tree, tree_util
from stride.jax import ad_checkpoint, debug, dtypes, example_libraries, lax, nn, numpy, random, scipy, sharding
from stride.jax import test_util, typing
from stride.jax._array import Array
from stride.jax._config import config, enable_x64
from stride.jax._custom_gradients import checkpoint, closure_convert, custom_gradient, custom_jvp, custom_vjp, remat
from stride.jax._gradients import grad, hessian, jacfwd, jacobian, jacrev, jvp, linearize, value_and_grad, vjp
from stride.jax._runtime import (
    block_until_ready, default_backend, device_count, device_get, device_put, devices, local_device_count,
    local_devices, process_count, process_index, typeof,
)  # fmt: skip
from stride.jax._transforms import (
    ShapeDtypeStruct, eval_shape, jit, make_jaxpr, named_call, named_scope, pmap, vmap,
)  # fmt: skip
from stride.jax.ad_checkpoint import checkpoint_policies
from stride.jax.sharding import Device

# Modules that programs import by name; they are Stride's own.
sys.modules[f"{__name__}.tree_util"] = tree_util
sys.modules[f"{__name__}.tree"] = tree

__version__ = "0.10"
__all__ = [
    "Array", "Device", "ShapeDtypeStruct", "ad_checkpoint", "block_until_ready", "checkpoint", "checkpoint_policies",
    "closure_convert", "config", "custom_gradient", "custom_jvp", "custom_vjp", "debug", "default_backend",
    "device_count", "device_get", "device_put", "devices", "dtypes", "enable_x64", "eval_shape", "example_libraries",
    "grad", "hessian", "jacfwd", "jacobian", "jacrev",
    "jit", "jvp", "lax", "linearize", "local_device_count", "local_devices", "make_jaxpr", "named_call", "named_scope",
    "nn", "numpy", "pmap", "process_count", "process_index", "random", "remat", "scipy", "sharding", "test_util",
    "tree", "tree_util", "typeof", "typing", "value_and_grad", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(f"stride.jax has no {name}")
