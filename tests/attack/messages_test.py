"""Attacks with what messages say: deep, huge, sizes that lie, names that point elsewhere, ids of others."""

import time
import uuid

import attack_case
import grpc
import stubs
from attack_case import EVIL, AttackCase

MOST_BYTES = 4 << 20
HUGE = (1 << 62, 1 << 60, (1 << 63) - 1, -1, -(1 << 63))


def nested(depth, tag, leaf=b""):
    """A protobuf field within itself."""
    out = leaf
    for _ in range(depth):
        out = tag + varint(len(out)) + out
    return out


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


class MessagesTest(AttackCase):
    def setUp(self):
        self.array = stubs.module("array_pb2")
        self.array_service = stubs.module("array_service_pb2")
        self.compute = stubs.module("compute_service_pb2")
        self.operation = stubs.module("operation_pb2")
        self.jobs = stubs.module("job_service_pb2")
        self.sessions = stubs.module("session_service_pb2")
        self.kernels = stubs.module("kernel_service_pb2")

    # --- short forms ---
    def run_code(self, operation, session=""):
        request = self.compute.RunRequest(session=session, operation=operation)
        return self.code_of(lambda: self.stub("ComputeService").Run(request, metadata=EVIL, timeout=60))

    def inline(self, count=1):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[count])
        return self.operation.Operand(inline_array=self.array.InlineArray(spec=spec, data=bytes(count)))

    def op(self, **kind):
        return self.operation.Operation(**kind, outputs=[self.operation.Output(inline_result=True)])

    def create(self, spec, parent, array_id="1"):
        request = self.array_service.CreateArrayRequest(parent=parent, array_id=array_id, spec=spec)
        return self.code_of(lambda: self.stub("ArrayService").CreateArray(request, metadata=EVIL, timeout=20))

    def put(self, messages, timeout=20):
        return self.code_of(lambda: self.stub("ArrayService").PutArray(iter(messages), metadata=EVIL, timeout=timeout))

    def header(self, parent, array_id="1", shape=(8,), **more):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=shape)
        return self.array_service.PutArrayRequest(
            header=self.array_service.PutArrayRequest.Header(parent=parent, array_id=array_id, spec=spec, **more))

    def data(self, count):
        return self.array_service.PutArrayRequest(data=bytes(count))

    # --- deep ---
    def test_deep_expressions(self):
        def expression(text):
            return self.run_code(self.op(expression=self.operation.Expression(text=text, inputs={"x": self.inline()})))

        def work(deadline):
            for depth in (99, 101, 10000, 100000, 1000000):
                for opening, closing in (
                    ("(", ")"), ("-", ""), ("cos(", ")"), ("~", ""), ("x**", ""), ("x+(", ")"),
                    ("where(x,", ",x)"),
                ):
                    text = opening * depth + "x" + closing * depth
                    if len(text) > MOST_BYTES:
                        continue
                    code = expression(text)
                    if depth > 5000:
                        self.assertEqual(code, "INVALID_ARGUMENT", text[:20])
                    else:
                        self.assertIn(code, ("OK", "INVALID_ARGUMENT"), text[:20])
            for text in (
                "x" * 3000000, "1" * 3000000, "x+" * 1000000 + "x", "x," * 1000000, "\0" * 60000,
                "\xff" * 60000, "x<" * 30000 + "x", " " * 3000000,
                "x if x else x",
                "x[0]",
                "__import__('os')",
            ):
                self.assertEqual(expression(text), "INVALID_ARGUMENT", text[:20])
        self.attack(work)

    def test_deep_protobuf(self):
        def work(deadline):
            # Status within Array has Any, but nothing of ours nests: groups of unknown fields do.
            for depth in (60, 200, 100000, 1000000):
                for method in ("ComputeService/Run", "ArrayService/PutArray", "JobService/CreateJob"):
                    for body in (b"\x7b" * depth + b"\x7c" * depth, b"\x7b" * depth, nested(min(depth, 2000), b"\x12")):
                        self.assertIn(self.raw_code(method, body), ("INVALID_ARGUMENT",), (method, depth))
        self.attack(work)

    def test_huge_messages(self):
        output = self.operation.Output(inline_result=True)

        def work(deadline):
            self.assertEqual(
                self.raw_code("ComputeService/Run", b"\x7a" + varint(8 << 20) + bytes(8 << 20)), "RESOURCE_EXHAUSTED"
            )
            many = self.operation.Operation(
                ufunc=self.operation.Ufunc(function="add", inputs=[self.operation.Operand()] * 1000000)
            )
            self.assertEqual(self.run_code(many), "INVALID_ARGUMENT")
            many = self.op(ufunc=self.operation.Ufunc(function="negative", inputs=[self.inline()]))
            many.outputs.extend([output] * 900000)
            self.assertEqual(self.run_code(many), "INVALID_ARGUMENT")
            named = {f"x{i}": self.operation.Operand(scalar=self.array.Scalar(int_value=i)) for i in range(150000)}
            self.assertEqual(
                self.run_code(self.op(expression=self.operation.Expression(text="x1", inputs=named))),
                "INVALID_ARGUMENT",
            )
            steps = [self.operation.View.Step(transpose=self.operation.View.Transpose())] * 500000
            self.assertEqual(
                self.run_code(self.op(view=self.operation.View(input=self.inline(), steps=steps))), "INVALID_ARGUMENT"
            )
            kernel = self.operation.KernelLaunch(source="extern \"C\" __global__ void k() {}", entry="k")
            kernel.arguments.extend([self.operation.KernelArgument(scalar=self.array.Scalar(int_value=1))] * 500000)
            self.assertEqual(self.run_code(self.operation.Operation(kernel_launch=kernel)), "INVALID_ARGUMENT")
            job = self.jobs.Job(operations=[self.operation.Operation()] * 1000000)
            self.assertEqual(
                self.code_of(
                    lambda: self.stub("JobService").CreateJob(self.jobs.CreateJobRequest(job=job), metadata=EVIL)
                ),
                "INVALID_ARGUMENT",
            )
            axes = self.op(reduction=self.operation.Reduction(function=1, input=self.inline(), axes=[0] * 1000000))
            self.assertEqual(self.run_code(axes), "INVALID_ARGUMENT")
            commands = [self.compute.Command(id=i) for i in range(300000)]
            replies = self.stub("ComputeService").Execute(
                iter([self.compute.ExecuteRequest(commands=commands)]), metadata=EVIL
            )
            self.assertEqual(self.code_of(lambda: list(replies)), "INVALID_ARGUMENT")
        self.attack(work)

    # --- sizes that lie ---
    def test_declared_sizes(self):
        session = self.session(ttl={"seconds": 5})

        def work(deadline):
            for size in HUGE:
                for shape in ([size], [size, size], [1, size], [0, size], [size, 0]):
                    spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_COMPLEX128, shape=shape)
                    self.assertIn(self.create(spec, session), ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), shape)
                    self.assertIn(self.put([self.header(session, shape=shape), self.data(8)]),
                                  ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), shape)
                    fill = self.operation.Creation(fill=self.operation.Creation.Fill(spec=spec))
                    self.assertIn(
                        self.run_code(self.op(creation=fill)), ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), shape
                    )
                    operand = self.operation.Operand(inline_array=self.array.InlineArray(spec=spec, data=b"12345678"))
                    self.assertEqual(
                        self.run_code(self.op(copy=self.operation.Copy(input=operand))), "INVALID_ARGUMENT"
                    )
                    view = self.operation.View(input=self.inline(), steps=[
                        self.operation.View.Step(broadcast=self.operation.View.Broadcast(shape=shape))])
                    code = self.run_code(self.op(view=view))
                    # An empty view costs nothing, whatever its other extents are.
                    self.assertIn(
                        code, ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", *(["OK"] if 0 in shape else [])), shape
                    )
            for shape in ([1 << 32] * 2, [1 << 16] * 4, [3037000500] * 2, [1] * 33, [1] * 100000, [2] * 63):
                spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_FLOAT64, shape=shape)
                self.assertIn(self.create(spec, session), ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), shape[:4])
            for kind in (0, 99, -1):
                self.assertEqual(
                    self.create(self.array.ArraySpec(data_type=kind, shape=[1]), session), "INVALID_ARGUMENT"
                )
            linear = self.operation.Creation(linear_space=self.operation.Creation.LinearSpace(
                start=self.array.Scalar(float_value=0), stop=self.array.Scalar(float_value=1), count=1 << 60))
            self.assertIn(self.run_code(self.op(creation=linear)), ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"))
            for step in (1e-300, 5e-324, 0.0, float("nan"), float("inf")):
                span = self.operation.Creation(range=self.operation.Creation.Range(
                    stop=self.array.Scalar(float_value=1e308), step=self.array.Scalar(float_value=step)))
                self.assertNotEqual(self.run_code(self.op(creation=span)), "UNKNOWN")
            for grid in ((1 << 32) - 1, 1 << 31):
                kernel = self.operation.KernelLaunch(
                    source="extern \"C\" __global__ void k() {}",
                    entry="k",
                    shared_memory_bytes=grid,
                    grid=self.operation.Dim3(x=grid, y=grid, z=grid),
                    block=self.operation.Dim3(x=grid, y=grid),
                )
                self.assertEqual(self.run_code(self.operation.Operation(kernel_launch=kernel)), "INVALID_ARGUMENT")
        self.attack(work)

    def test_ranges_of_uploads_and_downloads(self):
        session = self.session(ttl={"seconds": 5})
        ByteRange = self.array.ByteRange

        def work(deadline):
            for begin, end in ((-1, 4), (0, 9), (8, 8), (4, 2), (0, 1 << 62), ((1 << 63) - 1, -(1 << 63)), (9, 10)):
                piece = ByteRange(begin=begin, end=end)
                self.assertEqual(
                    self.put([self.header(session, range=piece), self.data(4)]), "INVALID_ARGUMENT", (begin, end)
                )
            spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[8])
            self.assertEqual(self.create(spec, session, "2"), "OK")
            for begin, end in ((-1, 4), (0, 9), (4, 2), (0, 1 << 62), ((1 << 63) - 1, -(1 << 63))):
                request = self.array_service.FetchArrayRequest(
                    name=f"{session}/arrays/2", range=ByteRange(begin=begin, end=end)
                )
                fetch = self.stub("ArrayService").FetchArray(request, metadata=EVIL)
                self.assertEqual(self.code_of(lambda: list(fetch)), "INVALID_ARGUMENT", (begin, end))
            for chunk in (-1, 1 << 30, -(1 << 31)):
                request = self.array_service.FetchArrayRequest(name=f"{session}/arrays/2", chunk_bytes=chunk)
                fetch = self.stub("ArrayService").FetchArray(request, metadata=EVIL)
                self.assertEqual(self.code_of(lambda: list(fetch)), "INVALID_ARGUMENT")
            # Too much, too little, nothing, data first, two headers, both at once.
            h, d = self.header(session, "3"), self.data
            both = self.header(session, "3")
            both.data = bytes(8)
            for messages in ([h, d(9)], [h, d(4), d(5)], [h, d(MOST_BYTES)], [d(8)], [h, h], [both], [], [h, d(8), h]):
                self.assertEqual(self.put(messages), "INVALID_ARGUMENT", len(messages))
            self.assertNotEqual(self.put([h, d(4)]), "OK")
            self.stub("SessionService").DeleteSession(self.sessions.DeleteSessionRequest(name=session), metadata=EVIL)
        self.attack(work)

    # --- names and ids ---
    def test_names(self):
        tricks = [
            "../../etc/passwd", "tenants/evil/arrays/../../calm/arrays/x", "tenants/calm/arrays/secret",
            "tenants//arrays/x", "tenants/evil/arrays/a\0b", "tenants/evil/arrays/%2e%2e%2fx",
            "tenants/evil%2Farrays/x", "/tenants/evil/arrays/x", "tenants/evil/arrays/x/",
            "TENANTS/evil/arrays/x", "tenants/evil/arrays/" + "a" * 256, "a/" * 400000, "x" * (1 << 20),
            "tenants/evil/arrays/\u202e", "sessions/../arrays/1", "sessions/x/arrays/-1",
            "sessions/x/arrays/18446744073709551616", "sessions/x/arrays/01", "sessions//arrays/1", "", " ",
            "sessions/" + "9" * 100000 + "/arrays/1", "tenants/evil/arrays/..",
        ]
        named = stubs.module("array_service_pb2").CreateArrayRequest(
            parent="tenants/calm", array_id="secret", spec=self.array.ArraySpec(data_type=1, shape=[1]))
        self.stub("ArrayService").CreateArray(named, metadata=[("stride-tenant", "calm")])
        refused = ("INVALID_ARGUMENT", "NOT_FOUND")

        def work(deadline):
            arrays, sessions, jobs = self.stub("ArrayService"), self.stub("SessionService"), self.stub("JobService")
            service = self.array_service
            for name in tricks:
                calls = [lambda: arrays.GetArray(service.GetArrayRequest(name=name), metadata=EVIL),
                         lambda: arrays.DeleteArray(service.DeleteArrayRequest(name=name), metadata=EVIL),
                         lambda: list(arrays.FetchArray(service.FetchArrayRequest(name=name), metadata=EVIL)),
                         lambda: sessions.GetSession(self.sessions.GetSessionRequest(name=name), metadata=EVIL),
                         lambda: sessions.DeleteSession(self.sessions.DeleteSessionRequest(name=name), metadata=EVIL),
                         lambda: jobs.GetJob(self.jobs.GetJobRequest(name=name), metadata=EVIL),
                         lambda: jobs.CancelJob(self.jobs.CancelJobRequest(name=name), metadata=EVIL),
                         lambda: list(jobs.WatchJob(self.jobs.WatchJobRequest(name=name), metadata=EVIL)),
                         lambda: arrays.CreateArray(service.CreateArrayRequest(
                             parent=name, array_id="x", spec=named.spec), metadata=EVIL),
                         lambda: arrays.CreateArray(service.CreateArrayRequest(
                             parent="tenants/evil", array_id=name, spec=named.spec), metadata=EVIL)]
                for i, attempt in enumerate(calls):
                    self.assertIn(self.code_of(attempt), refused, (name[:60], i))
                operand = self.operation.Operand(name=name)
                self.assertIn(self.run_code(self.op(copy=self.operation.Copy(input=operand))), refused, name[:60])
                if name:
                    output = self.operation.Operation(copy=self.operation.Copy(input=self.inline()),
                                                      outputs=[self.operation.Output(name=name)])
                    self.assertIn(self.run_code(output), refused, name[:60])
                    device = self.op(copy=self.operation.Copy(input=self.inline()))
                    device.device = name
                    self.assertIn(self.run_code(device), refused, name[:60])
        self.attack(work)
        got = self.stub("ArrayService").GetArray(self.array_service.GetArrayRequest(name="tenants/calm/arrays/secret"),
                                                 metadata=[("stride-tenant", "calm")])
        self.assertEqual(got.array.name, "tenants/calm/arrays/secret")
        self.stub("ArrayService").DeleteArray(self.array_service.DeleteArrayRequest(name="tenants/calm/arrays/secret"),
                                              metadata=[("stride-tenant", "calm")])

    def test_forged_and_replayed_ids(self):
        calm = [("stride-tenant", "calm")]
        sessions, jobs = self.stub("SessionService"), self.stub("JobService")
        theirs = sessions.CreateSession(
            self.sessions.CreateSessionRequest(ttl={"seconds": 60}), metadata=calm
        ).session.name
        fill = self.operation.Operation(
            creation=self.operation.Creation(
                fill=self.operation.Creation.Fill(spec=self.array.ArraySpec(data_type=1, shape=[1]))
            ),
            outputs=[self.operation.Output(handle=1)],
        )
        request = self.jobs.CreateJobRequest(job=self.jobs.Job(operations=[fill]), request_id=str(uuid.uuid4()))
        job = jobs.CreateJob(request, metadata=calm).job.name

        def work(deadline):
            # A session of another tenant is the same as one that is not there, in the same words.
            def words(name):
                try:
                    sessions.GetSession(self.sessions.GetSessionRequest(name=name), metadata=EVIL)
                except grpc.RpcError as error:
                    return error.code().name, error.details().replace(name, "NAME")
            self.assertEqual(words(theirs), words("sessions/0000-not-there"))
            self.assertEqual(words(theirs)[0], "NOT_FOUND")
            self.assertIn(self.run_code(fill, theirs), ("NOT_FOUND",))
            replies = self.stub("ComputeService").Execute(
                iter([self.compute.ExecuteRequest(session=theirs)]), metadata=EVIL
            )
            self.assertEqual(self.code_of(lambda: list(replies)), "NOT_FOUND")
            self.assertEqual(self.put([self.header(theirs), self.data(8)]), "NOT_FOUND")
            self.assertEqual(
                self.code_of(lambda: jobs.GetJob(self.jobs.GetJobRequest(name=job), metadata=EVIL)), "NOT_FOUND"
            )
            # Another's request id is one's own to use, and gives nothing of the other.
            mine = jobs.CreateJob(request, metadata=EVIL).job.name
            self.assertTrue(mine.startswith("tenants/evil/jobs/"), mine)
            # A replay returns the first job.
            self.assertEqual(jobs.CreateJob(request, metadata=EVIL).job.name, mine)
            list(jobs.WatchJob(self.jobs.WatchJobRequest(name=mine), metadata=EVIL))
            jobs.DeleteJob(self.jobs.DeleteJobRequest(name=mine), metadata=EVIL)
            for wrong in ("0" * 65, "0" * 100000, "../" * 1000):
                again = self.jobs.CreateJobRequest(job=request.job, request_id=wrong)
                self.assertEqual(
                    self.code_of(lambda: jobs.CreateJob(again, metadata=EVIL)), "INVALID_ARGUMENT", wrong[:40]
                )
            for token in ("x", "\0" * 1000, "9" * 100000, theirs):
                listing = self.jobs.ListJobsRequest(page_token=token)
                self.assertIn(self.code_of(lambda: jobs.ListJobs(listing, metadata=EVIL)), ("OK", "INVALID_ARGUMENT"))
        self.attack(work)
        sessions.DeleteSession(self.sessions.DeleteSessionRequest(name=theirs), metadata=calm)

    def test_sessions_without_end(self):
        """A tenant's sessions are bounded, and are free again when they have expired."""
        stub = self.stub("SessionService")
        request = self.sessions.CreateSessionRequest()

        def codes():
            return {
                self.code_of(lambda: stub.CreateSession(request, metadata=[("stride-tenant", "flooder")]))
                for _ in range(300)
            }
        self.attack(lambda deadline: self.assertEqual(codes(), {"OK", "RESOURCE_EXHAUSTED"}))
        time.sleep(2.5)
        for _ in range(200):
            stub.CreateSession(request, metadata=[("stride-tenant", "flooder")])

    def test_sources_without_end(self):
        """Sources that the compiler must not choke on."""
        sources = [
            "#include \"/etc/passwd\"\nextern \"C\" __global__ void k() {}",
            "#include </dev/zero>",
            "((((" * 20000,
            "\0\0\0",
            "template<int N> struct S { " "static const int v = S<N-1>::v; }; int x = S<100000>::v;",
            "#error " + "e" * 100000,
        ]

        def work(deadline):
            for source in sources:
                request = self.kernels.CreateModuleRequest(module=self.kernels.Module(source=source))
                code = self.code_of(lambda: self.stub("KernelService").CreateModule(request, metadata=EVIL, timeout=60))
                self.assertIn(code, ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"), source[:40])
        self.attack(work)


if __name__ == "__main__":
    attack_case.main()
