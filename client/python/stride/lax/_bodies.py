"""Loops and branches as operations of the service: functions traced into bodies, which the daemon repeats or chooses.

A **body** is a template (`_trace.Template`) whose captured arrays and constants are further inputs. Weak
arrays are numbers that a loop carries: like Python's numbers, they take the type of the other operand
(`Trace._weak`)."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from stride import _dtypes, _errors, _graph, _program, _session
from stride._array import Array, wrap
from stride._graph import Node, record_several
from stride._trace import Spec, Template, at, flatten, handles_in, trace
from stride.v1 import operation_pb2 as pb


_ANY_ARRAY = np.zeros(())


class Body(NamedTuple):
    """`message` has the inputs `given`, of the session that it was traced for, and then the function's own."""

    message: pb.Body
    given: List[Node]
    specs: Dict[int, tuple]  # the shape and type of each of the message's handles
    bodies: Dict[bytes, Dict[int, tuple]]  # the same of those within it

    @property
    def results(self) -> List[Tuple[tuple, np.dtype]]:
        """The shape and type of each result."""
        return [self.specs[one] for one in self.message.outputs]

    @property
    def num_operations(self) -> int:
        """How many there are, views among them."""
        return len(self.message.operations)


def tracing() -> Optional[_session.Session]:
    """The session of the function that is traced, if one is."""
    session = _session.current_session()
    return session if session._is_trace else None


def traced(
    where: str, function: Callable, specs: Sequence[tuple], session, weak: Sequence[bool] = ()
) -> Body:
    """`function` of arrays of these shapes and types, which returns a list of arrays. `weak`: which of them are."""

    def marked(*arrays):
        for array, is_weak in zip(arrays, weak):
            if is_weak:
                array.session._weak.add(array._node)
        return function(*arrays)

    structure = flatten((tuple([_ANY_ARRAY] * len(specs)), {}), [])
    with _graph.isolated(session):
        template, _ = trace(marked, structure, specs, session)
    return body_of(where, template, session)


def body_of(where: str, template: Template, session=None) -> Body:
    """The body that a template is. Without a session it is made of another one's operations."""
    device = "" if session is None else session.device
    outputs = [one.handle for one in template.outputs]
    commands = [(operation, paths) for operation, paths, _ in template.commands if operation is not None]
    writes = any(one.HasField("kernel_launch") or any(out.existing for out in one.outputs) for one, _ in commands)
    made: Set[int] = set()
    operations: List[pb.Operation] = []
    constants: List[_program.Constant] = []
    last = max([0, *template.inputs, *(handle for _, handle in template.captured), *outputs])
    last = max([last, *(handle for _, paths in commands for _, handle in paths)])
    for operation, _ in commands:
        if operation.device not in ("", device) or operation.priority or operation.copy.move:
            raise _unfit(where, "an operation on a device of its own")
        if operation.copy.input.HasField("inline_array"):
            constant = _program.Constant(operation.outputs[0].handle, operation)
            if not writes and constant.handle not in outputs:
                constants.append(constant)
                continue
            source = last + len(constants) + 1
            constants.append(_program.Constant(source, operation))
            operation = pb.Operation(
                copy=pb.Copy(input=pb.Operand(handle=source)), outputs=[pb.Output(handle=constant.handle)]
            )
        elif _program._has_inline(operation):
            raise _unfit(where, "an operation that brings its values along")
        if any(one.existing and one.handle not in made for one in operation.outputs):
            raise _unfit(where, "a write into an array from outside")
        made.update(one.handle for one in operation.outputs)
        arguments = operation.kernel_launch.arguments
        made.update(one.new_array.output.handle for one in arguments if one.HasField("new_array"))
        operations.append(operation)
    handles = [*(handle for _, handle in template.captured), *(one.handle for one in constants), *template.inputs]
    numbers: Dict[int, int] = {}
    message = pb.Body(inputs=[numbers.setdefault(one, len(numbers) + 1) for one in handles])
    for operation in operations:
        new = message.operations.add()
        new.CopyFrom(operation)
        new.ClearField("device")
        for path, handle in handles_in(operation):
            at(new, path).handle = numbers.setdefault(handle, len(numbers) + 1)
    message.outputs.extend(numbers[one] for one in outputs)
    given = [node for node, _ in template.captured]
    given += [_program.upload(session, one)._node for one in constants]
    specs = {number: template.specs[handle] for handle, number in numbers.items() if handle in template.specs}
    for one in constants:
        spec = one.operation.copy.input.inline_array.spec
        specs[numbers[one.handle]] = tuple(spec.shape), _dtypes.dtype_numbered(spec.data_type)
    return Body(message, given, specs, template.bodies)


def key_of(message: pb.Body) -> bytes:
    """The key of a body's shapes in a trace."""
    return message.SerializeToString(deterministic=True)


def _unfit(where: str, what: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"{where} within a function that is traced (by jit or vmap) cannot have {what}; call it outside",
        reason="NOT_IMPLEMENTED",
        metadata={"feature": f"{where} of {what}"},
    )


def loop(
    session,
    body: Body,
    carried: Sequence[Node],
    scanned: Sequence[Node] = (),
    count: Optional[int] = None,
    condition: Optional[Node] = None,
    reverse: bool = False,
) -> List[Array]:
    """The carried arrays after the last iteration, then the stacked ones; one of `count` and `condition` is set."""
    results = body.results
    if condition is not None:
        results = results[1:]
    results = results[: len(carried)] + [((count or 0, *shape), dtype) for shape, dtype in results[len(carried) :]]
    constants, num_carried = len(body.given), len(carried)

    def build(flush, operands, handles, origin):
        message = pb.Loop(
            body=body.message,
            constants=operands[:constants],
            carried=operands[constants : constants + num_carried],
            scanned=operands[constants + num_carried : constants + num_carried + len(scanned)],
            reverse=reverse,
        )
        if condition is None:
            message.count = count
        else:
            message.condition.CopyFrom(operands[-1])
        flush.session.bodies[key_of(body.message)] = body.specs
        flush.session.bodies.update(body.bodies)
        _add(flush, pb.Operation(loop=message), handles, results, origin)

    inputs = (*body.given, *carried, *scanned, *(() if condition is None else (condition,)))
    return [wrap(node) for node in record_several(session, results, build, inputs)]


def branch(session, bodies: List[Body], index: Node, inputs: Sequence[Node]) -> List[Array]:
    """The results of the body that `index` chooses, of the bodies' own inputs."""
    given: List[Node] = []
    places: Dict[int, int] = {}
    for body in bodies:
        for node in body.given:
            if places.setdefault(id(node), len(given)) == len(given):
                given.append(node)
    messages = []
    for body in bodies:
        message = pb.Body()
        message.CopyFrom(body.message)
        own = list(message.inputs)
        last = max([0, *own, *(handle for one in message.operations for _, handle in handles_in(one))])
        # One input for each array that any of the bodies is given.
        handles = [last + 1 + i for i in range(len(given))]
        for node, handle in zip(body.given, own):
            handles[places[id(node)]] = handle
        del message.inputs[:]
        message.inputs.extend([*handles, *own[len(body.given) :]])
        messages.append((message, {**dict(zip(handles, [(one.shape, one.dtype) for one in given])), **body.specs}))

    def build(flush, operands, handles, origin):
        message = pb.Branch(index=operands[0], inputs=operands[1:], bodies=[one for one, _ in messages])
        for (one, specs), body in zip(messages, bodies):
            flush.session.bodies[key_of(one)] = specs
            flush.session.bodies.update(body.bodies)
        _add(flush, pb.Operation(branch=message), handles, bodies[0].results, origin)

    return [wrap(node) for node in record_several(session, bodies[0].results, build, (index, *given, *inputs))]


def _add(flush, operation: pb.Operation, handles: List[int], results: List[tuple], origin) -> None:
    flush.session.specs.update(zip(handles, results))  # also of results without a holder
    operation.outputs.extend([pb.Output(handle=one) for one in handles])
    flush.add(operation, origin)
