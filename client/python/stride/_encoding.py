"""Commands as bytes: what operations of one kind have in common is serialised once, and each adds its id and handles.

Field numbers are those of stride/v1/operation.proto and compute_service.proto; the tests compare with the messages."""

import functools
from typing import Callable, Dict, Iterable, Tuple

import numpy as np

from stride.v1 import array_pb2, operation_pb2 as pb

# (field number << 3) | wire type, with 0 for a varint and 2 for a length-delimited field.
_COMMANDS = b"\x12"  # ExecuteRequest.commands
_ID = b"\x08"  # Command.id
_OPERATION = b"\x12"  # Command.operation
_WAIT = b"\x30\x01"  # Command.wait: true
_CODE_FROM = b"\x40"  # Command.code_from
_KERNEL_LAUNCH = b"\x2a"  # Operation.kernel_launch
_ARGUMENTS = b"\x52"  # KernelLaunch.arguments
_ARRAY = b"\x0a"  # KernelArgument.array
_HANDLE = b"\x08"  # Operand.handle, Output.handle
_OUTPUTS = b"\x7a"  # Operation.outputs
_EXISTING = b"\x20\x01"  # Output.existing: true
_DEVICE = b"\x82\x01"  # Operation.device
_RELEASE = b"\x1a"  # Command.release
_HANDLES = b"\x0a"  # Release.handles
_FETCH = b"\x22"  # Command.fetch
SYNCHRONIZE = b"\x2a\x00"  # Command.synchronize
_TEXT = b"\x0a"  # Expression.text
_INPUTS = b"\x12"  # Expression.inputs
_KEY, _VALUE = b"\x0a", b"\x12"  # fields of a map's entry

_MAX_NUMBERS = 1_024  # encoded numbers that are kept
_SHORT = [bytes((n,)) for n in range(128)]
_numbers: Dict[tuple, bytes] = {}
_operands: Dict[tuple, bytes] = {}
_EXACT = (int, np.integer, np.bool_)  # kinds of numbers whose zero has no sign
_COMPLEX = (complex, np.complexfloating)  # numbers with two signed zeros
# Bytes before a handle of n bytes, in an Operand with its length.
_BEFORE_HANDLE = [bytes((n + 1,)) + _HANDLE for n in range(11)]
_MAX_FORMATS = 64  # per template


def varint(number: int) -> bytes:
    """A non-negative integer in groups of seven bits, least significant first."""
    if number < 128:
        return _SHORT[number]
    if number < 1 << 14:
        return bytes((number & 127 | 128, number >> 7))
    if number < 1 << 21:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    return bytes((number & 127 | 128,)) + varint(number >> 7)


@functools.lru_cache(maxsize=1_024)
def array_argument(handle: int) -> bytes:
    """KernelLaunch.arguments: the array of a handle."""
    operand = _HANDLE + varint(handle)
    return framed_argument(_ARRAY + varint(len(operand)) + operand)


def framed_argument(argument: bytes) -> bytes:
    """KernelLaunch.arguments: a serialised KernelArgument."""
    return _ARGUMENTS + varint(len(argument)) + argument


def number_argument(value, to_proto: Callable[[object], array_pb2.Scalar]) -> bytes:
    """KernelLaunch.arguments: a number, and the function that makes its message."""
    key = (type(value), value)
    known = _numbers.get(key)
    if known is None:
        known = framed_argument(pb.KernelArgument(scalar=to_proto(value)).SerializeToString())
        _keep_number(_numbers, key, known)
    return known


def _keep_number(numbers: Dict[tuple, bytes], key: tuple, encoded: bytes) -> None:
    value = key[1]
    if isinstance(value, _EXACT) or value and not isinstance(value, _COMPLEX):  # 0.0 and -0.0 are one key
        if len(numbers) >= _MAX_NUMBERS:
            numbers.clear()
        numbers[key] = encoded


def framed(message: bytes) -> bytes:
    """A serialised message, or text, with its length in front."""
    return varint(len(message)) + message


def handle_operand(handle: int) -> bytes:
    """An Operand with its length in front: the array of a handle."""
    encoded = varint(handle)
    return _BEFORE_HANDLE[len(encoded)] + encoded


def number_operand(number) -> bytes:
    """An Operand with its length in front: a number, which is a `_graph.Number`."""
    key = number.type, number.value
    known = _operands.get(key)
    if known is None:
        known = framed(pb.Operand(scalar=number.to_proto()).SerializeToString())
        _keep_number(_operands, key, known)
    return known


def command(command_id: int, content: bytes) -> bytes:
    """ExecuteRequest.commands: a command with this id and other fields."""
    id_bytes = varint(command_id)
    return b"".join((_COMMANDS, varint(1 + len(id_bytes) + len(content)), _ID, id_bytes, content))


def release(handles: Iterable[int]) -> bytes:
    """Command.release of these handles."""
    return _RELEASE + framed(_HANDLES + framed(b"".join(map(varint, handles))))


def fetch(handle: int) -> bytes:
    """Command.fetch of a handle."""
    return _FETCH + handle_operand(handle)


def operation(message: bytes, wait: bool) -> bytes:
    """Command.operation, from a serialised Operation, and Command.wait."""
    return _OPERATION + framed(message) + (_WAIT if wait else b"")


def operation_with(content: bytes, handle: int, device: str) -> bytes:
    """Command.operation, from the serialised field with its kind, and the handle of its output."""
    encoded = varint(handle)
    output = _BEFORE_HANDLE[len(encoded)] + encoded
    return _OPERATION + framed(b"".join((content, _OUTPUTS, output, device_field(device))))


@functools.lru_cache(maxsize=256)
def device_field(device: str) -> bytes:
    """Operation.device."""
    return _DEVICE + framed(device.encode()) if device else b""


def expression(text: str, inputs: Dict[str, bytes]) -> bytes:
    """An Expression. `inputs`: Operands with their lengths in front, by name."""
    parts = [_TEXT, framed(text.encode())]
    for name, operand in inputs.items():
        before = _before_value(name)
        parts += _INPUTS, varint(len(before) + len(operand)), before, operand
    return b"".join(parts)


@functools.lru_cache(maxsize=256)
def _before_value(name: str) -> bytes:
    return _KEY + framed(name.encode()) + _VALUE


@functools.lru_cache(maxsize=128)
def kind_tag(kind: str) -> bytes:
    """The tag of an Operation's field with its kind."""
    return varint(pb.Operation.DESCRIPTOR.fields_by_name[kind].number << 3 | 2)


@functools.lru_cache(maxsize=128)
def field_tags(kind: str, names: Tuple[str, ...]) -> Tuple[bytes, ...]:
    """The tags of these fields of the kind's message, which are messages themselves."""
    fields = pb.Operation.DESCRIPTOR.fields_by_name[kind].message_type.fields_by_name
    return tuple(varint(fields[name].number << 3 | 2) for name in names)


class OperationTemplate:
    """The common part of operations of one kind whose serialised fields, except inputs, are `head`."""

    __slots__ = ("kind", "head", "_formats")

    def __init__(self, kind: bytes, head: bytes):
        self.kind = kind  # the tag of the Operation's field
        self.head = head
        # A format of bytes, by the lengths of a command's own parts, its device and whether its output
        # exists.
        self._formats: Dict[tuple, bytes] = {}

    def command(self, id_bytes: bytes, inputs: bytes, handle: bytes, device: str, existing: bool) -> bytes:
        """ExecuteRequest.commands: one operation. `inputs`: the other fields of the kind's message. `id_bytes` and
        `handle`, of the output, are varints. `existing`: the output is overwritten."""
        key = len(inputs), len(id_bytes), len(handle), device, existing
        text = self._formats.get(key)
        if text is None:
            if len(self._formats) >= _MAX_FORMATS:
                self._formats.clear()
            text = self._formats[key] = self._format(*key)
        return text % (id_bytes, inputs, handle)

    def _format(self, num_inputs: int, num_id: int, num_handle: int, device: str, existing: bool) -> bytes:
        # Sizes first, from the inside out.
        content_size = varint(len(self.head) + num_inputs)
        output_end = _EXISTING if existing else b""
        output_size = 1 + num_handle + len(output_end)
        end = output_end + device_field(device)
        operation_size = len(self.kind) + len(content_size) + len(self.head) + num_inputs + 3 + num_handle + len(end)
        operation_bytes = varint(operation_size)
        size = varint(2 + num_id + len(operation_bytes) + operation_size)
        before_inputs = b"".join((_OPERATION, operation_bytes, self.kind, content_size, self.head))
        before_handle = _OUTPUTS + varint(output_size) + _HANDLE
        parts = _COMMANDS + size + _ID, before_inputs, before_handle, end
        return b"%b".join(one.replace(b"%", b"%%") for one in parts)


class _UfuncTemplates(dict):
    """By the function's name."""

    def __missing__(self, function: str) -> OperationTemplate:
        if len(self) >= 1_024:
            self.clear()
        made = self[function] = OperationTemplate(kind_tag("ufunc"), pb.Ufunc(function=function).SerializeToString())
        return made


ufunc_templates = _UfuncTemplates()
(UFUNC_INPUT,) = field_tags("ufunc", ("inputs",))
(COPY_INPUT,) = field_tags("copy", ("input",))
(VIEW_INPUT,) = field_tags("view", ("input",))
(REDUCED_EXPRESSION,) = field_tags("reduction", ("expression",))
EXPRESSION, VIEW, COPY = (OperationTemplate(kind_tag(kind), b"") for kind in ("expression", "view", "copy"))


class LaunchTemplate:
    """The common part of launches of one kernel with one grid and device."""

    __slots__ = ("code", "head", "tail", "identity", "known", "_formats")

    def __init__(self, code: bytes, launch: pb.KernelLaunch, device: str, identity: tuple):
        self.code = code  # KernelLaunch's code and options, serialised
        self.head = launch.SerializeToString()  # the other fields, without arguments and variables
        self.tail = pb.Operation(device=device).SerializeToString()
        self.identity = identity  # identifies code and device, without the grid: see CommandStream.launched
        # The number of a stream that has launched it without variables, and the types of the arguments.
        self.known: tuple = (0, ())
        # A format of bytes, by the lengths of a command's own parts and whether it waits.
        self._formats: Dict[tuple, bytes] = {}

    def command(self, command_id: int, arguments: bytes, wait: bool, code_from: int) -> bytes:
        """ExecuteRequest.commands: one launch. `arguments`: KernelLaunch.arguments and globals, serialised.
        `code_from`: distance, in commands, to the earlier launch that has the code; 0: this one has it."""
        id_bytes, from_bytes = varint(command_id), varint(code_from) if code_from else b""
        key = len(arguments), len(id_bytes), wait, len(from_bytes)
        text = self._formats.get(key)
        if text is None:
            if len(self._formats) >= _MAX_FORMATS:
                self._formats.clear()
            text = self._formats[key] = self._format(*key)
        return text % (id_bytes, arguments, from_bytes)

    def _format(self, num_arguments: int, num_id: int, wait: bool, num_from: int) -> bytes:
        code = b"" if num_from else self.code
        launch_size = len(code) + len(self.head) + num_arguments
        launch_bytes = varint(launch_size)
        operation_size = 1 + len(launch_bytes) + launch_size + len(self.tail)
        operation_bytes = varint(operation_size)
        end = (_WAIT if wait else b"") + (_CODE_FROM if num_from else b"")
        size = varint(2 + num_id + len(operation_bytes) + operation_size + len(end) + num_from)
        before_arguments = b"".join((_OPERATION, operation_bytes, _KERNEL_LAUNCH, launch_bytes, code, self.head))
        parts = _COMMANDS + size + _ID, before_arguments, self.tail + end, b""
        return b"%b".join(one.replace(b"%", b"%%") for one in parts)
