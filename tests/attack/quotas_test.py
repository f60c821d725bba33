"""A tenant that creates resources without bound: the daemon keeps at most its quota of control bytes, and no response
reaches 2 GiB."""

import pathlib
import tempfile
import time

import attack_case
from attack_case import EVIL, AttackCase, stubs

QUOTA = 16 << 20
BIG = [("stride-tenant", "big")]
# The maximum growth of the daemon for a tenant within its quota: the allocator keeps fragments, and calls use memory
# while they last.
MOST_BYTES = 1 << 40 if attack_case.RSS_SLACK == 1 << 40 else 128 << 20
PATIENCE_SECONDS = 120
TENANTS = f"""
[tenant evil]
array-bytes = 1MiB
jobs = 20
operations = 2000
sessions = 50
control-bytes = {QUOTA}
[tenant big]
control-bytes = 256MiB
[tenant calm]
"""
SOURCE = "extern \"C\" __global__ void k() {}\n//" + "x" * 900000


class QuotasTest(AttackCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        tenants = pathlib.Path(cls._folder.name) / "tenants.conf"
        tenants.write_text(TENANTS)
        tenants.chmod(0o600)
        cls.flags = [*attack_case.FLAGS, f"--tenants={tenants}", "--trust-local"]
        super().setUpClass()
        cls.array, cls.operation = stubs.module("array_pb2"), stubs.module("operation_pb2")
        cls.jobs, cls.kernels = stubs.module("job_service_pb2"), stubs.module("kernel_service_pb2")
        cls.compute = stubs.module("compute_service_pb2")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls._folder.cleanup()

    # Each test checks the daemon's memory at its end.
    def setUp(self):
        self.before = self.daemon.rss_bytes()

    def assert_bounded(self):
        grown = self.daemon.rss_bytes() - self.before
        print(f"{self.id().split('.')[-1]}: {self.used() >> 10} KiB charged, {grown >> 20} MiB grown", flush=True)
        self.assertLessEqual(self.used(), QUOTA + (1 << 20))
        self.assertLess(grown, MOST_BYTES)
        self.assert_unharmed()

    def used(self, who=EVIL):
        pb = stubs.module("tenant_service_pb2")
        usage = self.stub("TenantService").GetUsage(pb.GetUsageRequest(), metadata=who).usage
        return next(quota.used for quota in usage.quotas if quota.name == "control-bytes")

    def comes_to(self, used):
        end = time.monotonic() + PATIENCE_SECONDS
        while self.used() > used and time.monotonic() < end:
            time.sleep(0.05)
        self.assertLessEqual(self.used(), used)

    def fill(self, **output):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_UINT8, shape=[0])
        return self.operation.Operation(creation=self.operation.Creation(fill=self.operation.Creation.Fill(spec=spec)),
                                        outputs=[self.operation.Output(**output)])

    def run_job(self, operations):
        """Creates a job and waits for its end. Returns the code of its acceptance."""
        stub = self.stub("JobService")
        request = self.jobs.CreateJobRequest(job=self.jobs.Job(operations=operations))
        name = ""

        def create():
            nonlocal name
            name = stub.CreateJob(request, metadata=EVIL).job.name
        code = self.code_of(create)
        if code == "OK":
            self.code_of(
                lambda: list(
                    stub.WatchJob(self.jobs.WatchJobRequest(name=name), metadata=EVIL, timeout=PATIENCE_SECONDS)
                )
            )
        return code

    def delete_jobs(self):
        stub = self.stub("JobService")
        while jobs := stub.ListJobs(self.jobs.ListJobsRequest(), metadata=EVIL).jobs:
            for job in jobs:
                self.code_of(lambda job=job: stub.DeleteJob(self.jobs.DeleteJobRequest(name=job.name), metadata=EVIL))

    def execute(self, commands):
        """Executes the commands in a new session. Returns the session and the number of results by code."""
        session = self.session(ttl={"seconds": 600})
        requests = (
            self.compute.ExecuteRequest(session=session, commands=commands[i:i + 500])
            for i in range(0, len(commands), 500)
        )
        codes = {}
        for response in self.stub("ComputeService").Execute(requests, metadata=EVIL, timeout=600):
            for result in response.results:
                codes[result.status.code] = codes.get(result.status.code, 0) + 1
        return session, codes

    def delete_session(self, name):
        sessions = stubs.module("session_service_pb2")
        self.stub("SessionService").DeleteSession(sessions.DeleteSessionRequest(name=name), metadata=EVIL)

    def test_finished_jobs(self):
        """150 jobs of 500 empty fills would take 330 MB: the oldest are dropped."""
        operations = [self.fill(handle=i + 1) for i in range(500)]
        for _ in range(150):
            self.assertEqual(self.run_job(operations), "OK")
        self.assert_bounded()
        self.delete_jobs()
        self.comes_to(0)

    def test_jobs_with_source(self):
        launch = self.operation.KernelLaunch(
            source=SOURCE, entry="k", grid=self.operation.Dim3(x=1), block=self.operation.Dim3(x=1)
        )
        codes = {self.run_job([self.operation.Operation(kernel_launch=launch)]) for _ in range(100)}
        self.assertLessEqual(codes, {"OK", "RESOURCE_EXHAUSTED"})
        self.assert_bounded()
        self.delete_jobs()
        self.comes_to(0)

    def test_empty_arrays(self):
        session, codes = self.execute(
            [self.compute.Command(id=i, operation=self.fill(handle=i)) for i in range(1, 40001)]
        )
        self.assertEqual(set(codes), {0, 8}, codes)  # RESOURCE_EXHAUSTED
        self.assertLess(codes[0], QUOTA / 1000)
        self.assert_bounded()
        self.delete_session(session)
        self.comes_to(0)

    def test_failed_handles(self):
        copy = self.operation.Copy(input=self.operation.Operand(handle=1 << 40))
        session, codes = self.execute(
            [
                self.compute.Command(
                    id=i, operation=self.operation.Operation(copy=copy, outputs=[self.operation.Output(handle=i)])
                )
                for i in range(1, 40001)
            ]
        )
        self.assertEqual(set(codes), {5}, codes)  # NOT_FOUND
        self.assert_bounded()
        self.delete_session(session)
        self.comes_to(0)

    def test_lists_of_modules(self):
        """60 modules of 0.9 MB each: the pages of their list fit into a client's messages."""
        stub = self.stub("KernelService")
        made = set()
        for i in range(60):
            request = self.kernels.CreateModuleRequest(module_id=f"m{i}", module=self.kernels.Module(source=SOURCE))
            made.add(stub.CreateModule(request, metadata=BIG, timeout=PATIENCE_SECONDS).module.name)

        def names():
            request = self.kernels.ListModulesRequest(page_size=7)
            while True:
                page = stub.ListModules(request, metadata=BIG)
                self.assertLessEqual(page.ByteSize(), 1 << 20)
                self.assertFalse(any(module.source for module in page.modules))
                yield from (module.name for module in page.modules)
                request.page_token = page.next_page_token
                if not request.page_token:
                    return

        def work(deadline):
            while time.monotonic() < deadline:
                self.assertEqual(set(names()), made)
        self.attack(work)
        self.assertEqual(
            stub.GetModule(self.kernels.GetModuleRequest(name="tenants/big/modules/m0"), metadata=BIG).module.source,
            SOURCE,
        )
        codes = set()
        for i in range(60):
            request = self.kernels.CreateModuleRequest(module_id=f"m{i}", module=self.kernels.Module(source=SOURCE))
            codes.add(
                self.code_of(
                    lambda request=request: stub.CreateModule(request, metadata=EVIL, timeout=PATIENCE_SECONDS)
                )
            )
        self.assertEqual(codes, {"OK", "RESOURCE_EXHAUSTED"})
        self.assertLessEqual(self.used(), QUOTA)
        for name in made:
            stub.DeleteModule(self.kernels.DeleteModuleRequest(name=name), metadata=BIG)
            self.code_of(lambda name=name: stub.DeleteModule(
                self.kernels.DeleteModuleRequest(name=name.replace("/big/", "/evil/")), metadata=EVIL))
        self.comes_to(0)


if __name__ == "__main__":
    attack_case.main()
