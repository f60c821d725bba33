"""`jax.example_libraries.optimizers`: each optimiser is three functions, `init_fun(params)`, `update_fun(i, grads,
state)` and `get_params(state)`, of pytrees. A state is a pytree: it can be an argument of `jit`.

Step sizes are numbers, or functions of the step's number."""

from typing import Any, Callable, NamedTuple

from stride.jax import numpy as jnp
from stride.tree_util import register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten

__all__ = [
    "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant", "exponential_decay",
    "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd",
]  # fmt: skip

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The three functions of an optimiser.

    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> optimizers.sgd(0.1)._fields
        ('init_fn', 'update_fn', 'params_fn')
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """For each leaf of the parameters a tuple: the parameter, and what the optimiser keeps of it; the structure of the
    parameters, and that of each tuple.

    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> len(optimizers.adam(0.1).init_fn(1.0).packed_state[0])
        3
    """

    packed_state: tuple
    tree_def: Any
    subtree_defs: tuple


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, parts: OptimizerState(parts[0], *structures),
)


def _made(num_kept: int, step: Callable) -> Optimizer:
    """`step(i, g, x, *kept)` gives the next parameter and what is kept of it, which begins as zeros."""

    def init(params: Any) -> OptimizerState:
        leaves, structure = tree_flatten(tree_map(jnp.asarray, params))
        packed = tuple((x, *(jnp.zeros_like(x) for _ in range(num_kept))) for x in leaves)
        return OptimizerState(packed, structure, tuple(map(tree_structure, packed)))

    def update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
        leaves, structure = tree_flatten(grads)
        if structure != state.tree_def:
            raise TypeError(
                f"optimizer update function was passed a gradient tree that did not match the parameter tree structure "
                f"with which it was initialized: parameter tree {state.tree_def} and grad tree {structure}."
            )
        packed = tuple(step(i, g, *kept) for g, kept in zip(leaves, state.packed_state))
        return OptimizerState(packed, state.tree_def, state.subtree_defs)

    return Optimizer(init, update, lambda state: tree_unflatten(state.tree_def, [one[0] for one in state.packed_state]))


def sgd(step_size: Any) -> Optimizer:
    """Gradient descent.

    Parameters
        step_size: a number, or a function of the step's number.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.sgd(0.5)
        >>> float(get_params(update(0, 2.0, init(3.0))))
        2.0
    """
    rate = make_schedule(step_size)
    return _made(0, lambda i, g, x: (x - rate(i) * g,))


def momentum(step_size: Any, mass: float) -> Optimizer:
    """Gradient descent along a sum of past gradients.

    Parameters
        step_size: as in `sgd`.
        mass: how much of the last sum is kept.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.momentum(0.5, 0.9)
        >>> round(float(get_params(update(1, 2.0, update(0, 2.0, init(3.0))))), 4)
        0.1
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple:
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _made(1, step)


def nesterov(step_size: Any, mass: float) -> Optimizer:
    """Gradient descent with Nesterov's momentum.

    Parameters
        step_size, mass: as in `momentum`.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.nesterov(0.5, 0.9)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        1.1
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple:
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _made(1, step)


def adagrad(step_size: Any, momentum: float = 0.9) -> Optimizer:
    """Adagrad: steps are divided by the root of the sum of squared gradients (Duchi, Hazan and Singer, 2011).

    Parameters
        step_size: as in `sgd`.
        momentum: how much of the last step is kept.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.adagrad(1.0)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        2.9
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any, last: Any) -> tuple:
        squares = squares + g * g
        scaled = jnp.where(squares > 0, g / jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)
        last = (1.0 - momentum) * scaled + momentum * last
        return x - rate(i) * last, squares, last

    return _made(2, step)


def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Optimizer:
    """RMSProp: steps are divided by the root of a decaying mean of squared gradients (Tieleman and Hinton, 2012).

    Parameters
        step_size: as in `sgd`.
        gamma: how much of the last mean is kept.
        eps: is added to the mean.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.rmsprop(0.1)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        2.6838
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any) -> tuple:
        mean = mean * gamma + g * g * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return _made(1, step)


def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Optimizer:
    """RMSProp with momentum.

    Parameters
        step_size, gamma, eps: as in `rmsprop`.
        momentum: how much of the last step is kept.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.rmsprop_momentum(0.1)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        2.6838
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any, last: Any) -> tuple:
        mean = mean * gamma + g * g * (1.0 - gamma)
        last = momentum * last + rate(i) * g / jnp.sqrt(mean + eps)
        return x - last, mean, last

    return _made(2, step)


def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam (Kingma and Ba, 2015, algorithm 1).

    Parameters
        step_size: as in `sgd`.
        b1, b2: how much of the last means of gradients and of their squares is kept.
        eps: is added to the root.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.adam(0.1)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        2.9
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any, squares: Any) -> tuple:
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * g * g + b2 * squares
        first = mean / (1 - jnp.asarray(b1, x.dtype) ** (i + 1))
        second = squares / (1 - jnp.asarray(b2, x.dtype) ** (i + 1))
        return x - rate(i) * first / (jnp.sqrt(second) + eps), mean, squares

    return _made(2, step)


def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """AdaMax (Kingma and Ba, 2015, algorithm 2).

    Parameters
        step_size, b1, b2, eps: as in `adam`; `eps` is added to the largest gradient.
    Returns
        An Optimizer.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> init, update, get_params = optimizers.adamax(0.1)
        >>> round(float(get_params(update(0, 2.0, init(3.0)))), 4)
        2.9
    """
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any, largest: Any) -> tuple:
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        return x - (rate(i) / (1 - jnp.asarray(b1, x.dtype) ** (i + 1))) * mean / (largest + eps), mean, largest

    return _made(2, step)


# --- step sizes ---


def constant(step_size: Any) -> Schedule:
    """The same at each step.

    Parameters
        step_size: a number.
    Returns
        A function of the step's number.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> optimizers.constant(0.1)(7)
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size * decay_rate ** (i / decay_steps).

    Parameters
        step_size, decay_steps, decay_rate: numbers.
    Returns
        A function of the step's number.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
        0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * i / decay_steps).

    Parameters
        step_size, decay_steps, decay_rate: numbers.
        staircase: whether i / decay_steps is rounded down.
    Returns
        A function of the step's number.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> optimizers.inverse_time_decay(1.0, 10, 1.0)(10)
        0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0) -> Schedule:
    """From one size to another in some steps.

    Parameters
        step_size, final_step_size: the first and the last size.
        decay_steps: how many steps are between them.
        power: of the distance to the last step.
    Returns
        A function of the step's number.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> float(optimizers.polynomial_decay(1.0, 10, 0.0)(5))
        0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """One size up to each boundary.

    Parameters
        boundaries: step numbers, ascending.
        values: sizes, one more than there are boundaries.
    Returns
        A function of the step's number.
    Raises
        ValueError for another number of values.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> float(optimizers.piecewise_constant([10], [1.0, 0.5])(11))
        0.5
    """
    ends, sizes = jnp.array(boundaries), jnp.array(values)
    if not ends.ndim == sizes.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if ends.shape[0] != sizes.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: sizes[jnp.sum(jnp.asarray(i) > ends)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function of the step's number, of a number or of such a function.

    Parameters
        scalar_or_schedule: either.
    Returns
        A function.
    Raises
        TypeError for what is neither.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> optimizers.make_schedule(0.5)(1)
        0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# --- gradients ---


def l2_norm(tree: Any) -> Any:
    """The Euclidean length of all leaves together.

    Parameters
        tree: a pytree of arrays.
    Returns
        An array without axes.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> float(optimizers.l2_norm([3.0, 4.0]))
        5.0
    """
    return jnp.sqrt(sum(jnp.sum(jnp.square(jnp.ravel(one))) for one in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients, shortened to a length where they are longer.

    Parameters
        grad_tree: a pytree of arrays.
        max_norm: the greatest length.
    Returns
        A pytree of the same structure.
    Example
        >>> from stride.jax.example_libraries import optimizers
        >>> [round(float(one), 4) for one in optimizers.clip_grads([3.0, 4.0], 1.0)]
        [0.6, 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
