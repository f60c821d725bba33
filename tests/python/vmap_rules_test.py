"""`vmap` has two sets of rules: the client's for traced functions, the service's for `Program.batching`.

Each function that vmap_test maps is traced once, and its commands become one program with `batching`. Shapes, types and
values must agree with those of the client's rules, and a function that one set refuses the other must refuse too."""

import uuid
from unittest import mock

import numpy as np

import client_case
import vmap_test
from stride import _batching, _dtypes, _errors, _program, _vmap
from stride._graph import record_several
from stride._array import wrap
from stride.v1 import operation_pb2 as pb, program_service_pb2 as proto, program_service_pb2_grpc


class VmapRulesTest(vmap_test.VmapTest):
    """The tests of vmap_test, each mapped function also by the service's rules."""

    num_compared = 0

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        assert cls.num_compared > 250, f"only {cls.num_compared} functions were compared"

    def setUp(self):
        super().setUp()
        trace, run = _vmap.trace, _batching._Batcher.run

        def traced(function, structure, specs, outer):
            template, result = trace(function, structure, specs, outer)
            template.outer = outer
            return template, result

        def batched(batcher, shared):
            template, given = batcher.template, set(batcher.batched)
            try:
                made = run(batcher, shared)
            except _errors.Unimplemented:
                self.assert_refused(template, batcher.size, given)
                raise
            if hasattr(template, "outer") and not template.outer._is_trace and not any(shared):
                self.compare(template, made, batcher.size, given)
            return made

        for owner, name, new in ((_vmap, "trace", traced), (_batching._Batcher, "run", batched)):
            patch = mock.patch.object(owner, name, new)
            patch.start()
            self.addCleanup(patch.stop)

    def program(self, template, size, batched):
        """The part and the constants of a program of the template for one item; None where no program can be."""
        template.has_bodies = True  # also for one command
        plan = _program.plan(template, template.outer.device)
        if plan is None or len(plan.parts) > 1:
            return None
        part, constants = plan.parts[0], {one.handle: one for one in plan.constants}
        program = proto.Program()
        program.CopyFrom(part.program)
        for handle, one in zip(part.inputs, program.inputs):
            axis = program.batching.inputs.add()
            if handle in constants:
                one.spec.CopyFrom(constants[handle].operation.copy.input.inline_array.spec)
                continue
            shape, dtype = template.specs[handle]
            if handle in batched:
                axis.axis = 0
                shape = (size, *shape)
            one.spec.shape.extend(shape)
            one.spec.data_type = _dtypes.NUMBERS[dtype]
        return program, part, plan.constants

    def create(self, session, program):
        stub = program_service_pb2_grpc.ProgramServiceStub(session._channels.control)
        name = f"rules.{uuid.uuid4().hex}"
        answer = session._call(stub.CreateProgram, proto.CreateProgramRequest(program_id=name, program=program))
        self.addCleanup(session._call, stub.DeleteProgram, proto.DeleteProgramRequest(name=answer.program.name))
        return answer

    def assert_refused(self, template, size, batched):
        made = self.program(template, size, batched)
        if made is not None:
            with self.assertRaises(_errors.Unimplemented):
                self.create(template.outer, made[0])

    def compare(self, template, ours, size, batched):
        made = self.program(template, size, batched)
        if made is None or not batched:  # the service takes the size from an input
            return
        program, part, constants = made
        session = template.outer
        answer = self.create(session, program)
        expected = [((size, *one.shape), _dtypes.NUMBERS[one.dtype]) for one in template.outputs]
        self.assertEqual([(tuple(one.shape), one.data_type) for one in answer.results], expected)
        replay = ours.replay

        def compared(session, nodes):
            results = replay(session, nodes)
            if session._is_trace:
                return results
            inputs = [*nodes, *(node for node, _ in template.captured)]
            inputs += [_program.upload(session, one)._node for one in constants]

            def call(flush, operands, handles, origin):
                given = [pb.Operand(handle=one.handle) for one in operands]
                message = pb.ProgramCall(program=answer.program.name, inputs=given)
                made = [pb.Output(handle=one) for one in handles]
                flush.add(pb.Operation(program_call=message, outputs=made), origin)

            specs = [((size, *one.shape), one.dtype) for one in template.outputs]
            for one, other in zip(results, map(wrap, record_several(session, specs, call, inputs))):
                np.testing.assert_allclose(other.to_numpy(), one.to_numpy(), rtol=1e-12, atol=1e-12)
            type(self).num_compared += 1
            return results

        ours.replay = compared

    def test_one_round_trip(self):
        self.skipTest("compares values, which takes round trips")


del vmap_test.VmapTest  # not once more here


if __name__ == "__main__":
    client_case.main()
