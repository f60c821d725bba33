"""Mixed load of several tenants on a daemon, whose memory, descriptors and threads, and its workers', are monitored.

Usage: soak_test.py STRIDED; $STRIDE_SOAK_SECONDS (60) is how long. Where something grows, the load goes on for up to
PERIODS periods: caches and pools of a slow machine fill late, and a leak grows in every period.
"""

import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/python"))
import grpc  # noqa: E402
import numpy as np  # noqa: E402
import stubs  # noqa: E402
from daemon_process import DaemonProcess  # noqa: E402

SECONDS = float(os.environ.get("STRIDE_SOAK_SECONDS", "60"))
TENANTS = ("ada", "bob", "eve")
# Before this share of the time caches fill and pools grow.
WARM_UP = 0.4
PERIODS = 4
SAMPLE_SECONDS = 0.25
# How much more a fitted line may have risen over a period, as a share of the mean and at least this many.
MOST_RISE = 0.15
LEAST_RISE = {
    "daemon memory": 24 << 20,
    "workers' memory": 24 << 20,
    "descriptors": 12,
    "threads": 12,
    "arena bytes": 16 << 20,
}
KERNEL = (
    'extern "C" __global__ void axpy(float a, const float* x, float* y, int n) '
    '{ int i = blockIdx.x * blockDim.x + threadIdx.x; '
    'if (i < n) y[i] = a * x[i] + 1.0f; }'
)


class Tenant(threading.Thread):
    """One client: everything that the service does, over and over, with every result checked."""

    def __init__(self, address, name, stopping):
        super().__init__(daemon=True)
        self._address, self._metadata, self._stopping = address, [("stride-tenant", name)], stopping
        self._random = random.Random(name)
        self.rounds, self.failure = 0, None
        for short in ("array", "operation", "array_service", "compute_service", "session_service", "job_service"):
            setattr(self, short, stubs.module(short + "_pb2"))
        self._name = name

    def run(self):
        try:
            while not self._stopping.is_set():
                # A channel of its own each time: connections come and go.
                with grpc.insecure_channel(self._address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                    self._session(channel)
        except Exception as error:  # The test reports it.
            self.failure = f"{self._name}: {error!r}"

    def _stub(self, channel, service, short):
        return getattr(stubs.module(short + "_pb2_grpc"), service + "Stub")(channel)

    def _session(self, channel):
        call = {"metadata": self._metadata, "timeout": 60}
        sessions = self._stub(channel, "SessionService", "session_service")
        arrays = self._stub(channel, "ArrayService", "array_service")
        compute = self._stub(channel, "ComputeService", "compute_service")
        jobs = self._stub(channel, "JobService", "job_service")
        name = sessions.CreateSession(self.session_service.CreateSessionRequest(), **call).session.name
        for _ in range(self._random.randrange(1, 6)):
            count = self._random.choice((1, 1000, 50000, 400000))
            values = np.arange(count, dtype=np.float32) % 1000
            self._put(arrays, name, values, call)
            op, out = self.operation, lambda handle: [self.operation.Output(handle=handle)]
            handle = lambda number: self.operation.Operand(handle=number)
            spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_FLOAT32, shape=[count])
            launch = op.KernelLaunch(
                source=KERNEL,
                entry="axpy",
                grid=op.Dim3(x=(count + 255) // 256),
                block=op.Dim3(x=256),
                arguments=[
                    op.KernelArgument(scalar=self.array.Scalar(float_value=2)),
                    op.KernelArgument(array=handle(1)),
                    op.KernelArgument(new_array=op.NewArray(spec=spec, output=op.Output(handle=2))),
                    op.KernelArgument(scalar=self.array.Scalar(int_value=count)),
                ],
            )
            operations = [
                op.Operation(kernel_launch=launch),
                op.Operation(ufunc=op.Ufunc(function="add", inputs=[handle(1), handle(2)]), outputs=out(3)),
                op.Operation(
                    expression=op.Expression(text="x*2 - y", inputs={"x": handle(3), "y": handle(1)}), outputs=out(4)
                ),
                op.Operation(
                    reduction=op.Reduction(function=op.Reduction.FUNCTION_MAX, input=handle(4)), outputs=out(5)
                ),
                # One that is refused.
                op.Operation(ufunc=op.Ufunc(function="nothing", inputs=[handle(1)]), outputs=out(6)),
            ]
            commands = [
                self.compute_service.Command(id=i, operation=operation) for i, operation in enumerate(operations)
            ]
            request = self.compute_service.ExecuteRequest(session=name, commands=commands)
            codes = [
                result.status.code for reply in compute.Execute(iter([request]), **call) for result in reply.results
            ]
            if codes != [0, 0, 0, 0, 3]:
                raise AssertionError(f"status codes {codes}")
            expected = (values + (2 * values + 1)) * 2 - values
            if not np.array_equal(self._fetch(arrays, f"{name}/arrays/4", call), expected):
                raise AssertionError(f"a wrong result of {count} elements")
            job = jobs.CreateJob(self.job_service.CreateJobRequest(job=self.job_service.Job(operations=[
                op.Operation(creation=op.Creation(fill=op.Creation.Fill(spec=spec)), outputs=out(1)),
                op.Operation(ufunc=op.Ufunc(function="sqrt", inputs=[handle(1)]), outputs=out(2))])), **call).job.name
            if self._random.random() < 0.5:
                jobs.CancelJob(self.job_service.CancelJobRequest(name=job), **call)
            for event in jobs.WatchJob(self.job_service.WatchJobRequest(name=job), **call):
                last = event.job.state
            if last not in (self.job_service.Job.STATE_SUCCEEDED, self.job_service.Job.STATE_CANCELLED):
                raise AssertionError(f"a job ended as {last}")
            jobs.DeleteJob(self.job_service.DeleteJobRequest(name=job), **call)
            release = self.compute_service.Command(release=self.compute_service.Release(handles=range(1, 7)))
            list(compute.Execute(iter([self.compute_service.ExecuteRequest(session=name, commands=[release])]), **call))
            self.rounds += 1
        # Half of the sessions are left to expire, with what an upload cut off left in them.
        if self._random.random() < 0.5:
            sessions.DeleteSession(self.session_service.DeleteSessionRequest(name=name), **call)
        else:
            self._put(arrays, name, np.zeros(1000, dtype=np.float32), call, cut=True)

    def _put(self, arrays, session, values, call, cut=False):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_FLOAT32, shape=values.shape)
        header = self.array_service.PutArrayRequest.Header(parent=session, array_id="1", spec=spec)
        data = values.tobytes()
        end = len(data) // 2 if cut else len(data)
        messages = [self.array_service.PutArrayRequest(header=header)]
        messages += [
            self.array_service.PutArrayRequest(data=data[i : min(i + (1 << 20), end)]) for i in range(0, end, 1 << 20)
        ]
        try:
            arrays.PutArray(iter(messages), **call)
        except grpc.RpcError:
            if not cut:
                raise

    def _fetch(self, arrays, name, call):
        replies = arrays.FetchArray(self.array_service.FetchArrayRequest(name=name), **call)
        return np.frombuffer(b"".join(reply.data for reply in replies), dtype=np.float32)


class SoakTest(unittest.TestCase):
    def test_everything_stays_flat(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        stubs.make(folder.name)
        self.daemon = DaemonProcess(sys.argv[1], ["--cpu-devices=2x1", "--trust-tenant-header", "--session-ttl=1s"])
        self.addCleanup(self.daemon.stop)  # also after a failure: ctest waits for all processes of a test
        self.channel = grpc.insecure_channel(self.daemon.unix)
        stopping = threading.Event()
        self.addCleanup(stopping.set)
        addresses = (self.daemon.unix, self.daemon.tcp, self.daemon.unix)
        tenants = [Tenant(address, name, stopping) for name, address in zip(TENANTS, addresses)]
        for tenant in tenants:
            tenant.start()
        self._watch(tenants, WARM_UP * SECONDS)
        growing, limits = set(LEAST_RISE), {}
        for _ in range(PERIODS):
            samples = self._watch(tenants, (1 - WARM_UP) * SECONDS)
            if any(tenant.failure for tenant in tenants):
                break
            growing &= self._growing(samples, limits)
            if not growing:
                break
        stopping.set()
        for tenant in tenants:
            tenant.join(timeout=120)
        self.assertEqual([tenant.failure for tenant in tenants if tenant.failure], [], self.daemon.log())
        self.assertTrue(all(tenant.rounds > 0 for tenant in tenants))
        print("rounds of work:", {name: tenant.rounds for name, tenant in zip(TENANTS, tenants)}, flush=True)
        self.assertEqual(growing, set(), "grows in every period")
        self._check_empty()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.log())

    def _watch(self, tenants, seconds):
        """Samples of so many seconds, as (time, numbers by name). Ends early where a tenant has failed."""
        samples, start = [], time.monotonic()
        while time.monotonic() < start + seconds and not any(tenant.failure for tenant in tenants):
            samples.append((time.monotonic(), self._sample()))
            time.sleep(SAMPLE_SECONDS)
        return samples

    def _devices(self):
        pb = stubs.module("device_service_pb2")
        watch = stubs.module("device_service_pb2_grpc").DeviceServiceStub(self.channel).WatchDevices
        return [
            sample for reply in watch(pb.WatchDevicesRequest(max_samples=1), timeout=60) for sample in reply.samples
        ]

    def _sample(self):
        workers = 0
        for pid in self.daemon.workers():
            try:
                workers += self.daemon.rss_bytes(pid)
            except (OSError, AttributeError):  # it has just ended
                pass
        return {
            "daemon memory": self.daemon.rss_bytes(),
            "workers' memory": workers,
            "descriptors": self.daemon.descriptors(),
            "threads": self.daemon.threads(),
            "arena bytes": sum(sample.arena_bytes for sample in self._devices()),
        }

    def _growing(self, samples, limits):
        """The names of the numbers that grow in these samples. `limits` by name are those of the first period: a leak
        raises the mean, and must not raise its own limit."""
        growing, times = set(), np.array([at for at, _ in samples])
        for name, least in LEAST_RISE.items():
            values = np.array([sample[name] for _, sample in samples], dtype=float)
            slope = np.polyfit(times - times[0], values, 1)[0]
            rise, mean = slope * (times[-1] - times[0]), values.mean()
            print(
                f"{name}: mean {mean:.0f}, least {values.min():.0f}, most {values.max():.0f}, rise {rise:.0f}",
                flush=True,
            )
            if rise >= limits.setdefault(name, max(MOST_RISE * mean, least)):
                growing.add(name)
        return growing

    def _check_empty(self):
        """Sessions expire with all that was in them."""
        end = time.monotonic() + 30
        while left := sum(sample.array_bytes for sample in self._devices()):
            self.assertLess(time.monotonic(), end, f"{left} bytes of arrays are left")
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
