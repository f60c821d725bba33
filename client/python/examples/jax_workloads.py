"""JAX's quickstart: selu over a million elements, and a matrix times a batch of vectors."""

import numpy as np

import stride as jnp


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def activation():
    x = jnp.arange(1e6, dtype=jnp.float32)
    host = np.arange(1e6, dtype=np.float32)
    expected = np.float32(1.05) * np.where(host > 0, host, np.float32(1.67) * np.exp(np.minimum(host, 0)) - np.float32(1.67))
    np.testing.assert_allclose(np.asarray(selu(x)), expected, rtol=1e-6)
    print("selu: right")


def batched_product():
    random = np.random.default_rng(1701)
    matrix, batch = random.normal(size=(150, 100)), random.normal(size=(10, 100))
    on_device, vectors = jnp.asarray(matrix), jnp.asarray(batch)
    one_by_one = jnp.stack([on_device @ vectors[i] for i in range(10)])
    at_once = vectors @ on_device.T  # what vmap makes of it
    np.testing.assert_allclose(np.asarray(one_by_one), batch @ matrix.T, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(at_once), batch @ matrix.T, rtol=1e-10)
    print("batched product: right")


if __name__ == "__main__":
    with jnp.connect():
        activation()
        batched_product()
