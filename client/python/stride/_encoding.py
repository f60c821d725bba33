"""Commands as bytes: what launches of one kernel have in common is serialised once, and each adds its id and arguments.
Composites, such as a stack of arrays, are commands that differ in numbers alone.

Field numbers are those of stride/v1/operation.proto and compute_service.proto; the tests compare with the messages."""

import functools
import operator
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from stride.v1 import array_pb2, compute_service_pb2, operation_pb2 as pb

# (field number << 3) | wire type, with 0 for a varint and 2 for a length and so many bytes.
_COMMANDS = b"\x12"  # ExecuteRequest.commands
_ID = b"\x08"  # Command.id
_OPERATION = b"\x12"  # Command.operation
_WAIT = b"\x30\x01"  # Command.wait: true
_CODE_FROM = b"\x40"  # Command.code_from
_KERNEL_LAUNCH = b"\x2a"  # Operation.kernel_launch
_ARGUMENTS = b"\x52"  # KernelLaunch.arguments
_ARRAY = b"\x0a"  # KernelArgument.array
_HANDLE = b"\x08"  # Operand.handle

_MAX_NUMBERS = 1_024  # encoded numbers that are kept
_SHORT = [bytes((n,)) for n in range(128)]
_numbers: Dict[tuple, bytes] = {}
_EXACT = (int, np.integer, np.bool_)  # kinds of numbers whose zero has no sign
_COMPLEX = (complex, np.complexfloating)  # whose parts are zeros with signs each


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
        if isinstance(value, _EXACT) or value and not isinstance(value, _COMPLEX):  # 0.0 and -0.0 are one key
            if len(_numbers) >= _MAX_NUMBERS:
                _numbers.clear()
            _numbers[key] = known
    return known


class LaunchTemplate:
    """What launches of one kernel with one grid and device have in common."""

    __slots__ = ("code", "head", "tail", "identity", "known")

    def __init__(self, code: bytes, launch: pb.KernelLaunch, device: str, identity: tuple):
        self.code = code  # KernelLaunch's code and options, serialised
        self.head = launch.SerializeToString()  # the rest, but for arguments and variables
        self.tail = pb.Operation(device=device).SerializeToString()
        self.identity = identity  # of the code and the device, without the grid: see CommandStream.launched
        # The number of a stream that has launched it without variables, and the types of the arguments.
        self.known: tuple = (0, ())

    def command(self, command_id: int, arguments: bytes, wait: bool, code_from: int) -> bytes:
        """ExecuteRequest.commands: one launch. `arguments`: KernelLaunch.arguments and globals, serialised.
        `code_from`: how many commands before it another has the code; 0: this one has it."""
        code = b"" if code_from else self.code
        launch_size = len(code) + len(self.head) + len(arguments)
        launch_bytes, id_bytes = varint(launch_size), varint(command_id)
        operation_size = 1 + len(launch_bytes) + launch_size + len(self.tail)
        operation_bytes = varint(operation_size)
        end = _WAIT if wait else b""
        if code_from:
            end += _CODE_FROM + varint(code_from)
        size = 2 + len(id_bytes) + len(operation_bytes) + operation_size + len(end)
        return b"".join((
            _COMMANDS, varint(size), _ID, id_bytes, _OPERATION, operation_bytes, _KERNEL_LAUNCH, launch_bytes, code,
            self.head, arguments, self.tail, end,
        ))


# A placeholder is found in serialised commands by its bytes, so that it has three at least. Two recordings from
# different first numbers agree in all other bytes, or some bytes were taken for a placeholder by chance.
_MIN_WIDTH = 3
_FIRST_PLACEHOLDERS = {width: ((5 << 7 * (width - 1)) + 0x2A5B, (9 << 7 * (width - 1)) + 0x1D37) for width in range(3, 6)}
_MAX_PLACEHOLDERS = 1_000


class CommandSequence:
    """Several serialised commands of which only handles and ids differ: those of one composite of arrays that lie in
    the same way. Made by `recorded`."""

    __slots__ = ("text", "num_fresh", "width", "operations", "num_commands", "_order")

    def __init__(self, text: bytes, order: Tuple[int, ...], num_fresh: int, width: int,
                 operations: Tuple[Tuple[int, int], ...], num_commands: int):
        self.text = text  # a format of bytes
        self.num_fresh = num_fresh  # ids and handles that each copy takes from the session
        self.width = width  # bytes of each of these as a varint
        self.operations = operations  # which fresh number is the id of an operation, and its place among the commands
        self.num_commands = num_commands
        self._order = operator.itemgetter(*order)

    def copy(self, numbers: List[bytes]) -> bytes:
        """The commands with these numbers, as varints: handles of inputs, that of the output, fresh ones."""
        return self.text % self._order(numbers)


# Adds commands with these handles of inputs, of the output, and with fresh numbers. Returns the commands.
Record = Callable[[List[int], int, Callable[[], int]], compute_service_pb2.ExecuteRequest]


def recorded(record: Record, widths: Sequence[int], width: int) -> Optional[CommandSequence]:
    """The commands that `record` adds, for handles of so many bytes each: of the inputs, and of the output and of fresh
    numbers. None where the places of the numbers cannot be told from other bytes."""
    if min((width, *widths)) < _MIN_WIDTH or max((width, *widths)) not in _FIRST_PLACEHOLDERS:
        return None
    first, second = (_recorded_from(record, widths, width, which) for which in (0, 1))
    if first is None or second is None or first.text != second.text or first._order(range(_MAX_PLACEHOLDERS)) != \
            second._order(range(_MAX_PLACEHOLDERS)):
        return None
    return first


def _recorded_from(record: Record, widths: Sequence[int], width: int, which: int) -> Optional[CommandSequence]:
    inputs = [_FIRST_PLACEHOLDERS[one][which] + i for i, one in enumerate(widths)]
    output = _FIRST_PLACEHOLDERS[width][which] + len(inputs)
    fresh: List[int] = []

    def next_id() -> int:
        fresh.append(output + 1 + len(fresh))
        return fresh[-1]

    request = record(inputs, output, next_id)
    numbers = [*inputs, output, *fresh]
    if len(numbers) > _MAX_PLACEHOLDERS:
        return None
    whole = request.SerializeToString()
    places = []
    for i, number in enumerate(numbers):
        pattern = varint(number)
        place = whole.find(pattern)
        while place >= 0:
            places.append((place, i))
            place = whole.find(pattern, place + 1)
    places.sort()
    text, end = b"", 0
    for place, i in places:
        if place < end:
            return None  # two overlap
        text += whole[end:place].replace(b"%", b"%%") + b"%b"
        end = place + len(varint(numbers[i]))
    text += whole[end:].replace(b"%", b"%%")
    operations = tuple((fresh.index(command.id), i) for i, command in enumerate(request.commands)
                       if command.HasField("operation"))
    return CommandSequence(text, tuple(i for _, i in places), len(fresh), width, operations, len(request.commands))
