"""JAX's quickstart: selu over a million elements, and a matrix times a batch of vectors."""

import numpy as np

import stride as jnp


@jnp.jit
def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def activation():
    x = jnp.arange(1e6, dtype=jnp.float32)
    host = np.arange(1e6, dtype=np.float32)
    expected = np.float32(1.05) * np.where(
        host > 0, host, np.float32(1.67) * np.exp(np.minimum(host, 0)) - np.float32(1.67)
    )
    np.testing.assert_allclose(np.asarray(selu(x)), expected, rtol=1e-6)
    print("selu: right")


def batched_product():
    random = jnp.random.Generator(1701)
    matrix, batch = random.normal(size=(150, 100)), random.normal(size=(10, 100))

    def apply_matrix(x):
        return jnp.matmul(matrix, x)

    naive = jnp.stack([apply_matrix(batch[i]) for i in range(10)])

    @jnp.jit
    def vmap_batched_apply_matrix(batch):
        return jnp.vmap(apply_matrix)(batch)

    expected = np.asarray(batch) @ np.asarray(matrix).T
    np.testing.assert_allclose(np.asarray(naive), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.asarray(vmap_batched_apply_matrix(batch)), expected, rtol=1e-10, atol=1e-12)
    print("batched product: right")


if __name__ == "__main__":
    with jnp.connect():
        activation()
        batched_product()
