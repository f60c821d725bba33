"""Batching rules over the commands that a function was traced into.

Batched arrays have the new axis in front. A rule turns one command into commands on arrays of which some are
batched."""

from typing import Dict, List, Optional, Set

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._trace import Spec, Template, shape_of_view
from stride._vmap_bodies import Bodies
from stride.v1 import compute_service_pb2, operation_pb2 as pb


class _Batcher:
    """Rewrites the commands of a template. `batched` are the handles whose arrays have the new axis;
    `template.specs` the shapes without it."""

    def __init__(self, template: Template, size: int, batched_inputs: Set[int]):
        self.template, self.size = template, size
        self.batched = set(batched_inputs)
        self.specs = dict(template.specs)  # specs of emitted arrays, with the axis
        self.base: Dict[int, int] = {}  # a view's base array
        self.forced: Set[int] = set()  # arrays that a batched value is written into
        self.commands: List[tuple] = []
        self.origin: object = None
        self.next = max((0, *template.specs, *(h for _, paths, _ in template.commands for one in paths
                                               for h in ([one] if type(one) is int else [one[1]]))), default=0)

    def run(self, shared: List[bool]) -> "Template":
        """`shared`: the outputs that are the same for all items. Raises ValueError if such an output differs
        between items."""
        while not self._pass():
            pass
        template = self.template
        outputs = []
        for one, is_shared in zip(template.outputs, shared):
            handle = one.handle
            if is_shared:
                if handle in self.batched:
                    raise ValueError(
                        "vmap's out_axes is None for a result that differs between the items: give it an axis"
                    )
                outputs.append(one)
                continue
            if handle not in self.batched:
                self.origin = None
                handle = self.copied(self.broadcast(handle, (self.size, *one.shape)))
            outputs.append(Spec(handle, (self.size, *one.shape), one.dtype))
        return Template(self.commands, template.inputs, template.captured, outputs, self.specs, template.bodies)

    def _pass(self) -> bool:
        """False if an array turned out to be batched after it was made: the pass then starts again."""
        known = set(self.forced)
        self.commands, self.specs, self.base = [], dict(self.template.specs), {}
        self.batched = {one for one in self.batched if one in self.template.inputs}
        for handle in self.batched:
            shape, dtype = self.template.specs[handle]
            self.specs[handle] = ((self.size, *shape), dtype)
        for operation, paths, origin in self.template.commands:
            self.origin = origin
            if operation is None:
                self.release(paths)
            else:
                self.rule(operation)
            if len(self.forced) != len(known):
                return False
        return True

    # --- emitting ---

    def handle(self, shape, dtype) -> int:
        self.next += 1
        self.specs[self.next] = (tuple(shape), dtype)
        return self.next

    def emit(self, operation: pb.Operation) -> None:
        self.commands.append((compute_service_pb2.Command(operation=operation), self.origin))

    def release(self, handles) -> None:
        self.commands.append((compute_service_pb2.Command(release=compute_service_pb2.Release(handles=handles)), None))

    def shape(self, handle: int) -> tuple:
        return self.specs[handle][0]

    def view(self, handle: int, *steps) -> int:
        shape, dtype = self.specs[handle]
        result = self.handle(shape_of_view(shape, steps), dtype)
        self.emit(
            pb.Operation(view=pb.View(input=pb.Operand(handle=handle), steps=steps), outputs=[pb.Output(handle=result)])
        )
        return result

    def reshaped(self, handle: int, shape) -> int:
        shape = tuple(shape)
        return (
            handle
            if shape == self.shape(handle)
            else self.view(handle, pb.View.Step(reshape=pb.View.Reshape(shape=shape)))
        )

    def transposed(self, handle: int, axes) -> int:
        axes = list(axes)
        return (
            handle if axes == sorted(axes) else self.view(handle, pb.View.Step(transpose=pb.View.Transpose(axes=axes)))
        )

    def broadcast(self, handle: int, shape) -> int:
        return (
            handle
            if tuple(shape) == self.shape(handle)
            else self.view(handle, pb.View.Step(broadcast=pb.View.Broadcast(shape=shape)))
        )

    def copied(self, handle: int, into: Optional[int] = None) -> int:
        shape, dtype = self.specs[handle]
        result = self.handle(shape, dtype) if into is None else into
        self.emit(pb.Operation(copy=pb.Copy(input=pb.Operand(handle=handle)), outputs=[pb.Output(handle=result)]))
        return result

    def range(self, rank: int) -> int:
        """The indices of the items, with `rank` trailing axes of one element."""
        result = self.handle((self.size,), _dtypes.int64)
        operation = pb.Operation(
            creation=pb.Creation(range=pb.Creation.Range(data_type=_dtypes.NUMBERS[_dtypes.int64])),
            outputs=[pb.Output(handle=result)],
        )
        operation.creation.range.stop.int_value = self.size
        self.emit(operation)
        return self.reshaped(result, (self.size, *(1,) * rank))

    # --- operands ---

    def is_batched(self, operand: pb.Operand) -> bool:
        return bool(operand.handle) and operand.handle in self.batched

    def rank(self, operand: pb.Operand) -> int:
        """The shape without the new axis."""
        source = operand.WhichOneof("source")
        if source == "handle":
            return len(self.shape(operand.handle)) - self.is_batched(operand)
        return len(operand.inline_array.spec.shape) if source == "inline_array" else 0

    def aligned(self, operand: pb.Operand, rank: int) -> pb.Operand:
        """The operand with axes of one element after the new one, so that it broadcasts with others of `rank`."""
        if not self.is_batched(operand) or self.rank(operand) >= rank:
            return operand
        shape = self.shape(operand.handle)
        return pb.Operand(
            handle=self.reshaped(operand.handle, (self.size, *(1,) * (rank - len(shape) + 1), *shape[1:]))
        )

    def as_handle(self, operand: pb.Operand) -> int:
        if operand.handle:
            return operand.handle
        spec = operand.inline_array.spec
        result = self.handle(tuple(spec.shape), _dtypes.dtype_numbered(spec.data_type))
        self.emit(pb.Operation(copy=pb.Copy(input=operand), outputs=[pb.Output(handle=result)]))
        return result

    def with_axis(self, operand: pb.Operand) -> int:
        """A batched array of an operand that may be shared."""
        handle = self.as_handle(operand)
        return handle if handle in self.batched else self.broadcast(handle, (self.size, *self.shape(handle)))

    # --- rules ---

    def rule(self, operation: pb.Operation) -> None:
        kind = operation.WhichOneof("kind")
        message = getattr(operation, kind)
        operands = self.operands(kind, message)
        existing = [one.handle for one in operation.outputs if one.existing]
        any_batched = any(map(self.is_batched, operands))
        num_forced = len(self.forced)
        for handle in existing:
            if any_batched and handle not in self.batched:
                self.force(handle)
        if len(self.forced) != num_forced:
            return  # the shapes of this pass are those of an array without the new axis
        into_batched = any(handle in self.batched for handle in existing)
        if kind == "view":
            self.base[operation.outputs[0].handle] = self.base.get(message.input.handle, message.input.handle)
        if not any_batched and not into_batched:
            self.unbatched(operation)
            return
        rule = getattr(self, f"_{kind}", None)
        if rule is None:
            raise self.no_rule(f"kernel {message.entry}" if kind == "kernel_launch" else kind)
        new = pb.Operation()
        new.CopyFrom(operation)
        rule(new, getattr(new, kind))

    @staticmethod
    def operands(kind: str, message) -> List[pb.Operand]:
        if kind == "kernel_launch":
            return [one.array for one in message.arguments if one.HasField("array")]
        found = []
        for field, value in message.ListFields():
            if field.message_type is pb.Operand.DESCRIPTOR:
                found += [value] if isinstance(value, pb.Operand) else list(value)
        return found + list(message.inputs.values()) if kind == "expression" else found

    @staticmethod
    def no_rule(what: str) -> _errors.Unimplemented:
        return _errors.Unimplemented(
            f"vmap has no rule for {what} on arrays that differ between the items",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": f"vmap of {what}"},
        )

    def force(self, handle: int) -> None:
        base = self.base.get(handle, handle)
        if base in self.template.inputs or any(base == one for _, one in self.template.captured):
            raise _errors.TracingError("a mapped function cannot write into what all its items share")
        self.forced.add(base)
        self.batched.add(handle)

    def unbatched(self, operation: pb.Operation) -> None:
        """Emits an operation unchanged, except that an array into which a batched value is written is made
        for every item."""
        outputs = [one.handle for one in operation.outputs if not one.existing]
        outputs += [
            one.new_array.output.handle for one in operation.kernel_launch.arguments if one.HasField("new_array")
        ]
        forced = [one for one in outputs if one in self.forced]
        if not forced:
            self.emit(operation)
            return
        new = pb.Operation()
        new.CopyFrom(operation)
        renamed = {}
        for one in (
            *new.outputs,
            *(one.new_array.output for one in new.kernel_launch.arguments if one.HasField("new_array")),
        ):
            if one.handle in forced:
                shape, dtype = self.template.specs[one.handle]
                renamed[one.handle] = one.handle = self.handle(shape, dtype)
        self.emit(new)
        for old, single in zip(forced, (renamed[one] for one in forced)):
            shape, dtype = self.template.specs[old]
            self.made(old)
            self.copied(self.broadcast(single, (self.size, *shape)), old)

    def made(self, handle: int) -> None:
        """Marks an output as batched."""
        shape, dtype = self.template.specs.get(handle, ((), None))
        if handle not in self.template.specs:
            raise self.no_rule("this operation")
        self.specs[handle] = ((self.size, *shape), dtype)
        self.batched.add(handle)

    def finish(self, operation: pb.Operation) -> None:
        for one in operation.outputs:
            if not one.existing:
                if one.handle not in self.template.specs and len(operation.outputs) > 1:
                    # A second result without a reader.
                    self.template.specs[one.handle] = ((), None)
                self.made(one.handle)
        self.emit(operation)

    def elementwise(self, operation: pb.Operation, operands) -> None:
        rank = max(
            [self.rank(one) for one in operands]
            + [len(self.shape(one.handle)) - 1 for one in operation.outputs if one.existing]
        )
        for one in operands:
            one.CopyFrom(self.aligned(one, rank))
        self.finish(operation)

    def _ufunc(self, operation, ufunc) -> None:
        self.elementwise(operation, [*ufunc.inputs, *([ufunc.where] if ufunc.HasField("where") else [])])

    def _expression(self, operation, expression) -> None:
        self.elementwise(operation, list(expression.inputs.values()))

    def _copy(self, operation, copy) -> None:
        self.elementwise(operation, [copy.input])

    def _reduction(self, operation, reduction) -> None:
        others = [*reduction.more_inputs, *([reduction.where] if reduction.HasField("where") else [])]
        rank = max(map(self.rank, (reduction.input, *others)))
        for one in (reduction.input, *others) if others else ():
            one.CopyFrom(pb.Operand(handle=self.as_handle(self.aligned(one, max(rank, 1)))))
        axes = [axis % rank for axis in reduction.axes] or list(range(rank))
        places = reduction.function in (pb.Reduction.FUNCTION_ARGMIN, pb.Reduction.FUNCTION_ARGMAX)
        if not axes and others:
            axes = [0]
        elif not axes:  # one element per item
            reduction.input.handle = self.reshaped(reduction.input.handle, (self.size, 1))
            axes = [0]
        elif places and len(axes) > 1:
            # The index of one element among all elements of an item.
            reduction.input.handle = self.reshaped(
                reduction.input.handle, (self.size, int(np.prod(self.shape(reduction.input.handle)[1:])))
            )
            axes = [0]
        del reduction.axes[:]
        reduction.axes.extend(axis + 1 for axis in axes)
        handle = operation.outputs[0].handle
        wanted = (self.size, *self.template.specs[handle][0])
        self.made(handle)
        flat = places and reduction.keep_dims or not rank
        if flat:
            reduction.keep_dims = False
            operation.outputs[0].handle = self.handle((self.size,), self.specs[handle][1])
        self.emit(operation)
        if flat:
            self.copied(self.reshaped(operation.outputs[0].handle, wanted), handle)

    def _loop(self, operation, loop) -> None:
        Bodies(self).loop(loop, [one.handle for one in operation.outputs])

    def _branch(self, operation, branch) -> None:
        Bodies(self).branch(branch, [one.handle for one in operation.outputs])

    def _matmul(self, operation, matmul) -> None:
        ranks = [self.rank(matmul.left), self.rank(matmul.right)]
        lead = max(0, *(rank - 2 for rank in ranks))
        for operand, rank, is_left in ((matmul.left, ranks[0], True), (matmul.right, ranks[1], False)):
            handle = self.as_handle(operand)
            shape = self.shape(handle)
            own = shape[1:] if handle in self.batched else shape
            if rank == 1:
                own = (1, *own) if is_left else (*own, 1)
            if handle in self.batched:
                own = (self.size, *(1,) * (lead - len(own) + 2), *own)
            operand.CopyFrom(pb.Operand(handle=self.reshaped(handle, own)))
        handle = operation.outputs[0].handle
        left, right = self.shape(matmul.left.handle), self.shape(matmul.right.handle)
        full = (*_inference.broadcast(left[:-2], right[:-2]), left[-2], right[-1])
        self.made(handle)
        wanted, dtype = self.specs[handle]
        if full == wanted:
            self.emit(operation)
            return
        operation.outputs[0].handle = self.handle(full, dtype)
        self.emit(operation)
        self.copied(self.reshaped(operation.outputs[0].handle, wanted), handle)

    def _linalg(self, operation, linalg) -> None:
        if linalg.function != pb.Linalg.FUNCTION_SOLVE:
            self.finish(operation)
            return
        left, right = linalg.operands
        is_vector = self.rank(right) == 1
        handle = operation.outputs[0].handle
        if is_vector and self.is_batched(right):
            # A column, since a matrix of the items' vectors would be one right-hand side for all.
            right.handle = self.reshaped(right.handle, (*self.shape(right.handle), 1))
        rank = max(self.rank(left), self.rank(right))
        if not is_vector or self.is_batched(right):
            left.CopyFrom(self.aligned(left, rank))
            right.CopyFrom(self.aligned(right, rank))
        self.made(handle)
        wanted, dtype = self.specs[handle]
        if not is_vector or not self.is_batched(right):
            self.emit(operation)
            return
        operation.outputs[0].handle = self.handle((*wanted, 1), dtype)
        self.emit(operation)
        self.copied(self.reshaped(operation.outputs[0].handle, wanted), handle)

    def _fft(self, operation, fft) -> None:
        rank = self.rank(fft.input)
        axes = [axis % rank + 1 for axis in fft.axes] or list(range(1, rank + 1))
        del fft.axes[:]
        fft.axes.extend(axes)
        self.finish(operation)

    def _outer(self, operation, outer) -> None:
        left, right = self.as_handle(outer.left), self.as_handle(outer.right)
        ranks = self.rank(outer.left), self.rank(outer.right)
        shape = self.shape(left)
        columns = self.reshaped(left, (*shape, *(1,) * ranks[1]))
        if right in self.batched:
            shape = self.shape(right)
            right = self.reshaped(right, (self.size, *(1,) * ranks[0], *shape[1:]))
        ufunc = pb.Ufunc(function=outer.function, data_type=outer.data_type, casting=outer.casting)
        for one in (columns, right):
            ufunc.inputs.add(handle=one)
        operation.ufunc.CopyFrom(ufunc)
        self.finish(operation)

    def _view(self, operation, view) -> None:
        shape = self.shape(view.input.handle)[1:]
        steps = []
        for step in view.steps:
            after = shape_of_view(shape, [step])
            kind = step.WhichOneof("kind")
            new = pb.View.Step()
            new.CopyFrom(step)
            if kind == "slice":
                new.slice.axis = step.slice.axis % len(shape) + 1
            elif kind == "transpose":
                axes = list(step.transpose.axes) or list(range(len(shape) - 1, -1, -1))
                del new.transpose.axes[:]
                new.transpose.axes.extend((0, *(axis + 1 for axis in axes)))
            elif kind == "reshape":
                del new.reshape.shape[:]
                new.reshape.shape.extend((self.size, *after))
            else:
                steps.append(
                    pb.View.Step(reshape=pb.View.Reshape(shape=(self.size, *(1,) * (len(after) - len(shape)), *shape)))
                )
                del new.broadcast.shape[:]
                new.broadcast.shape.extend((self.size, *after))
            steps.append(new)
            shape = after
        del view.steps[:]
        view.steps.extend(steps)
        handle = operation.outputs[0].handle
        self.specs[handle] = ((self.size, *shape), self.specs[view.input.handle][1])
        self.batched.add(handle)
        self.emit(operation)

    def _accumulation(self, operation, accumulation) -> None:
        accumulation.axis = accumulation.axis % max(1, self.rank(accumulation.input)) + 1
        self.finish(operation)

    def _sort(self, operation, sort) -> None:
        sort.axis = (sort.axis if sort.HasField("axis") else -1) % self.rank(sort.input) + 1
        for key in (sort.input, *sort.more_keys) if sort.more_keys else ():
            key.CopyFrom(pb.Operand(handle=self.with_axis(key)))
        self.finish(operation)

    def _select(self, operation, select) -> None:
        rank = self.rank(select.input)
        axis = (select.axis if select.HasField("axis") else -1) % rank
        num_axes, of_items = self.rank(select.ranks), self.is_batched(select.ranks)
        select.axis = axis + 1
        if of_items or num_axes > 1:  # otherwise the same for every item
            ranks = self.with_axis(select.ranks)
            if num_axes < rank:
                count = self.shape(ranks)[-1]
                ranks = self.reshaped(ranks, (self.size, *(count if i == axis else 1 for i in range(rank))))
            select.ranks.CopyFrom(pb.Operand(handle=ranks))
            select.input.CopyFrom(pb.Operand(handle=self.with_axis(select.input)))
        self.finish(operation)

    def _partition(self, operation, partition) -> None:
        partition.axis = (partition.axis if partition.HasField("axis") else -1) % self.rank(partition.input) + 1
        self.finish(operation)

    def _interpolate(self, operation, interpolate) -> None:
        if self.is_batched(interpolate.known) or self.is_batched(interpolate.values):
            raise self.no_rule("interp between known values that differ")
        self.finish(operation)

    def _top_k(self, operation, top_k) -> None:
        top_k.axis = (top_k.axis if top_k.HasField("axis") else -1) % self.rank(top_k.input) + 1
        self.finish(operation)

    def _group_reduce(self, operation, group) -> None:
        if self.is_batched(group.groups):
            raise self.no_rule("group_reduce by groups")
        group.axis = group.axis % self.rank(group.values) + 1
        self.finish(operation)

    def _reduce_at(self, operation, reduce_at) -> None:
        if self.is_batched(reduce_at.indices):
            raise self.no_rule("reduceat at indices")
        reduce_at.axis = reduce_at.axis % self.rank(reduce_at.input) + 1
        self.finish(operation)

    def _search(self, operation, search) -> None:
        if self.is_batched(search.sorted):
            raise self.no_rule("searchsorted in sorted arrays")
        self.finish(operation)

    def _gather(self, operation, gather) -> None:
        axis = gather.axis % self.rank(gather.input)
        handle = operation.outputs[0].handle
        if gather.along_axis:
            gather.input.CopyFrom(pb.Operand(handle=self.with_axis(gather.input)))
            self.along(gather)
            self.finish(operation)
            return
        if not any(map(self.is_batched, gather.indices)):
            gather.axis = axis + 1
            self.finish(operation)
            return
        if self.is_batched(gather.input):
            gather.input.handle = self.items_at(gather.input.handle, axis)
            self.with_items(gather.indices)
        else:
            self.align_all(gather.indices)
        gather.axis = axis
        # The items' axis is at the position of the first indexed axis.
        self.made(handle)
        shape, dtype = self.specs[handle]
        if not axis:
            self.emit(operation)
            return
        operation.outputs[0].handle = self.handle((*shape[1:axis + 1], self.size, *shape[axis + 1:]), dtype)
        self.emit(operation)
        self.copied(
            self.transposed(operation.outputs[0].handle, (axis, *range(axis), *range(axis + 1, len(shape)))), handle
        )

    def _scatter(self, operation, scatter) -> None:
        target = operation.outputs[0].handle
        rank = len(self.shape(target)) - 1
        axis = scatter.axis % rank
        if scatter.along_axis:
            self.along(scatter, rank)
            scatter.values.CopyFrom(self.aligned(scatter.values, rank))
            self.emit(operation)
            return
        self.assigned(operation, scatter)

    def _apply_at(self, operation, apply_at) -> None:
        self.assigned(operation, apply_at)

    def assigned(self, operation, scatter) -> None:
        """At indices of axes, one array each; functions of one input have no values."""
        target = operation.outputs[0].handle
        rank = len(self.shape(target)) - 1
        axis = scatter.axis % rank
        num_indices = len(scatter.indices)
        result_rank = rank - num_indices + max(map(self.rank, scatter.indices))
        if not any(map(self.is_batched, scatter.indices)):
            scatter.axis = axis + 1
            if scatter.HasField("values"):
                scatter.values.CopyFrom(self.aligned(scatter.values, result_rank))
            self.emit(operation)
            return
        values = self.aligned(scatter.values, result_rank)
        if self.is_batched(scatter.values):
            values = pb.Operand(
                handle=self.transposed(values.handle, (*range(1, axis + 1), 0, *range(axis + 1, result_rank + 1)))
            )
        elif self.rank(values) > result_rank - axis:
            handle = self.as_handle(values)
            shape = self.shape(handle)
            before = len(shape) - (result_rank - axis)
            values = pb.Operand(handle=self.reshaped(handle, (*shape[:before], 1, *shape[before:])))
        if scatter.HasField("values"):
            scatter.values.CopyFrom(values)
        self.with_items(scatter.indices)
        scatter.axis = axis
        operation.outputs[0].handle = self.items_at(target, axis)
        self.emit(operation)

    def along(self, message, rank: Optional[int] = None) -> None:
        """take_along_axis and its counterpart: one array of indices, with as many axes as what is indexed."""
        rank = self.rank(message.indices[0]) if rank is None else rank
        message.axis = message.axis % rank + 1
        if not self.is_batched(message.indices[0]):
            handle = self.as_handle(message.indices[0])
            message.indices[0].CopyFrom(pb.Operand(handle=self.reshaped(handle, (1, *self.shape(handle)))))

    def items_at(self, handle: int, axis: int) -> int:
        """A view with the items' axis before `axis`."""
        return self.transposed(handle, (*range(1, axis + 1), 0, *range(axis + 1, len(self.shape(handle)))))

    def align_all(self, indices) -> int:
        rank = max(map(self.rank, indices))
        for one in indices:
            one.CopyFrom(self.aligned(one, rank))
        return rank

    def with_items(self, indices) -> None:
        """Each item's own indices, with the item's number in front."""
        rank = self.align_all(indices)
        others = [pb.Operand() for _ in indices]
        for new, old in zip(others, indices):
            new.CopyFrom(old)
        del indices[:]
        indices.extend([pb.Operand(handle=self.range(rank)), *others])
