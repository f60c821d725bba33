"""The form of the docstrings and signatures of names that only kernels give a meaning."""

import inspect
from typing import Dict

_PARAMETERS: Dict[str, str] = {
    "a": "a number.",
    "ary": "an array.",
    "b": "a number.",
    "c": "a number.",
    "condition": "a bool.",
    "delta": "how many places the other thread is away.",
    "dtype": "the element type.",
    "idx": "the element's index, or a tuple of one for each axis.",
    "lane_mask": "the bits in which the places differ.",
    "mask": "the threads that take part: a bit for each thread of the warp.",
    "ndim": "1, 2 or 3: the number of axes.",
    "ns": "nanoseconds.",
    "old": "the number that the element must be.",
    "predicate": "the thread's condition.",
    "shape": "an integer or a tuple of integers, known when the kernel is compiled.",
    "size": "the number of elements, known when the kernel is compiled.",
    "src_lane": "the place of the other thread.",
    "val": "a number.",
    "value": "the thread's number.",
    "x": "a number.",
    "y": "a number.",
    "z": "a number.",
}


def docstring(summary: str, parameters: str, gives: str, example: str) -> str:
    """The docstring of a function; `parameters` are its names, separated by commas."""
    names = [one.split("=")[0].strip() for one in parameters.split(",") if one.strip()]
    listed = "".join(f"        {name}: {_PARAMETERS[name]}\n" for name in names)
    section = f"    Parameters\n{listed}" if names else ""
    return f"""{summary}

    Only kernels give the name a meaning.

{section}    Returns
        {gives}
    Raises
        TypeError where it is called outside a kernel.
    Example
        {example}
    """


def signature(parameters: str) -> inspect.Signature:
    """The signature of a function; `parameters` are its names, separated by commas, with their defaults."""

    def parameter(text: str) -> inspect.Parameter:
        name, _, default = text.strip().partition("=")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(name, kind, default=int(default) if default else inspect.Parameter.empty)

    return inspect.Signature([parameter(one) for one in parameters.split(",") if one])
