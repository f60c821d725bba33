"""One operation that a backward rule reads: its message, operands and results."""

from typing import Any, Optional

import numpy as np

from stride import _conversion, _dtypes, _errors
from stride.v1 import operation_pb2 as pb


class _WithOld(tuple):
    """The inputs' cotangents, and that of the array that was written into."""


class _Call:
    """One operation with its inputs."""

    def __init__(self, operation, message, by_path, arrays, tracked, results, old, bodies):
        self.bodies = bodies
        self.operation, self.message, self._by_path = operation, message, by_path
        self.arrays, self.tracked, self.results, self.old = arrays, tracked, results, old
        self.kind = operation.WhichOneof("kind")

    def place(self, *path) -> Optional[int]:
        return self._by_path.get((self.kind, *path))

    def operand(self, message: pb.Operand, *path) -> Any:
        """An array, or a number."""
        i = self.place(*path)
        return _constant(message) if i is None else self.arrays[i]

    def only(self, *paths) -> None:
        """Raises where the result stands on another tracked input."""
        allowed = {self.place(*path) for path in paths}
        if any(tracked and i not in allowed for i, tracked in enumerate(self.tracked)):
            raise _no_rule(f"{self.kind} by all of its inputs")


def _constant(operand: pb.Operand) -> Any:
    source = operand.WhichOneof("source")
    if source == "scalar":
        scalar = operand.scalar
        kind = scalar.WhichOneof("value")
        value = getattr(scalar, kind) if kind else 0
        if kind == "complex_value":
            value = complex(value.real, value.imaginary)
        return _dtypes.dtype_numbered(scalar.data_type).type(value) if scalar.data_type else value
    spec = operand.inline_array.spec
    values = np.frombuffer(operand.inline_array.data, _dtypes.dtype_numbered(spec.data_type)).reshape(tuple(spec.shape))
    return _conversion.asarray(values)


def _no_rule(what: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"grad has no rule for {what}: define the derivative by custom_vjp, or keep what is differentiated out of it",
        reason="NOT_IMPLEMENTED", metadata={"feature": f"gradient of {what}"})
