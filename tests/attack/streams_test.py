"""Attacks with calls: silent streams, slow readers, cancels at every moment, clients that die, handles fought over."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import attack_case
import grpc
import stubs
from attack_case import EVIL, AttackCase

MIB = 1 << 20
# One connection takes 256 streams.
STREAMS = 256

# A client that uploads until it is killed: address, stubs' folder, session.
UPLOADER = """
import sys
sys.path[:0] = [{support!r}, {folder!r}]
import grpc, stubs, time
pb, array = stubs.module("array_service_pb2"), stubs.module("array_pb2")
def messages():
    spec = array.ArraySpec(data_type=array.DATA_TYPE_INT8, shape=[1 << 28])
    yield pb.PutArrayRequest(header=pb.PutArrayRequest.Header(parent={session!r}, array_id={handle!r}, spec=spec))
    print("under way", flush=True)
    while True:
        yield pb.PutArrayRequest(data=bytes(1 << 16))
        time.sleep(0.001)
stub = stubs.module("array_service_pb2_grpc").ArrayServiceStub(grpc.insecure_channel({address!r}))
stub.PutArray(messages(), metadata=[("stride-tenant", "evil")])
"""


class StreamsTest(AttackCase):
    def setUp(self):
        self.array = stubs.module("array_pb2")
        self.array_service = stubs.module("array_service_pb2")
        self.compute = stubs.module("compute_service_pb2")
        self.operation = stubs.module("operation_pb2")
        self.sessions = stubs.module("session_service_pb2")
        self.jobs = stubs.module("job_service_pb2")
        self.devices = stubs.module("device_service_pb2")

    # --- short forms ---
    def fill(self, handle, count=MIB):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[count])
        return self.operation.Operation(creation=self.operation.Creation(fill=self.operation.Creation.Fill(spec=spec)),
                                        outputs=[self.operation.Output(handle=handle)])

    def add(self, handle, a=1, b=1):
        inputs = [self.operation.Operand(handle=a), self.operation.Operand(handle=b)]
        return self.operation.Operation(ufunc=self.operation.Ufunc(function="add", inputs=inputs),
                                        outputs=[self.operation.Output(handle=handle)])

    def request(self, session, *operations, **more):
        commands = [self.compute.Command(id=i, operation=op, **more) for i, op in enumerate(operations)]
        return self.compute.ExecuteRequest(session=session, commands=commands)

    def close_session(self, name):
        request = self.sessions.DeleteSessionRequest(name=name)
        self.code_of(lambda: self.stub("SessionService").DeleteSession(request, metadata=EVIL, timeout=30))

    def silent_streams(self, open_call, connections=3):
        """Opens as many calls as connections let it, which say nothing until the deadline."""
        def work(deadline):
            done = threading.Event()

            def silence():
                done.wait()
                return
                yield

            channels = [self.new_channel() for _ in range(connections)]
            calls = [open_call(channel, silence()) for channel in channels for _ in range(STREAMS)]
            time.sleep(max(0, deadline - time.monotonic()))
            for channel in channels:
                channel.close()
            done.set()
            del calls
        return work

    # --- silence ---
    def test_silent_executes(self):
        """More than the daemon has threads for: those of one tenant are bounded, and others' calls go on."""
        self.attack(self.silent_streams(
            lambda channel, silence: self.stub("ComputeService", channel).Execute(silence, metadata=EVIL)))

    def test_silent_uploads(self):
        def work(deadline):
            self.silent_streams(
                lambda channel, silence: self.stub("ArrayService", channel).PutArray.future(silence, metadata=EVIL),
                connections=1,
            )(deadline)
        self.attack(work)

    def test_idle_uploads_leave_streams_for_other_clients(self):
        done = threading.Event()

        def silence():
            done.wait()
            return
            yield

        channel = self.new_channel()
        calls = [self.stub("ArrayService", channel).PutArray.future(silence(), metadata=EVIL) for _ in range(STREAMS)]
        time.sleep(0.5)
        calm = [("stride-tenant", "calm")]
        session = (
            self.stub("SessionService").CreateSession(self.sessions.CreateSessionRequest(), metadata=calm).session.name
        )
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[4])
        header = self.array_service.PutArrayRequest.Header(parent=session, array_id="1", spec=spec)
        messages = [self.array_service.PutArrayRequest(header=header), self.array_service.PutArrayRequest(data=b"abcd")]
        put = self.stub("ArrayService").PutArray(iter(messages), metadata=calm, timeout=20)
        self.assertEqual(put.array.state, self.array.Array.STATE_READY)
        channel.close()
        done.set()
        del calls
        self.stub("SessionService").DeleteSession(self.sessions.DeleteSessionRequest(name=session), metadata=calm)

    def test_unread_device_watches(self):
        request = self.devices.WatchDevicesRequest(interval={"nanos": 50000000})
        def work(deadline):
            channels = [self.new_channel() for _ in range(2)]
            calls = [
                self.stub("DeviceService", channel).WatchDevices(request, metadata=EVIL)
                for channel in channels
                for _ in range(STREAMS)
            ]
            time.sleep(max(0, deadline - time.monotonic()))
            for channel in channels:
                channel.close()
            del calls
        self.attack(work)

    # --- slow ---
    def test_unread_downloads(self):
        session = self.session(ttl={"seconds": 300})
        names = []

        def work(deadline):
            if not names:
                list(
                    self.stub("ComputeService").Execute(
                        iter([self.request(session, self.fill(1, 32 * MIB))]), metadata=EVIL
                    )
                )
                names.append(f"{session}/arrays/1")
            channels = [self.new_channel() for _ in range(4)]
            calls = []
            for channel in channels:
                for _ in range(16):
                    fetch = self.stub("ArrayService", channel).FetchArray(
                        self.array_service.FetchArrayRequest(name=names[0]), metadata=EVIL)
                    calls.append(fetch)
            time.sleep(max(0, deadline - time.monotonic()))
            for channel in channels:
                channel.close()
        try:
            before = self.state()
            self.attack_keeps_arrays(work)
        finally:
            self.close_session(session)
        self.assert_settles(before)

    def attack_keeps_arrays(self, work):
        """As attack(), for one whose array lives until its session is closed."""
        excess = self.excess
        self.excess = lambda before, now: {k: v for k, v in excess(before, now).items() if k != "array_bytes"}
        try:
            self.attack(work)
        finally:
            self.excess = excess

    # --- ends ---
    def test_cancels_at_every_moment(self):
        generator = random.Random(3)

        def work(deadline):
            session = self.session()
            channel = self.new_channel()
            compute, arrays = self.stub("ComputeService", channel), self.stub("ArrayService", channel)
            handle = 0
            while time.monotonic() < deadline:
                handle += 1
                request = self.request(
                    session, self.fill(3 * handle), self.add(3 * handle + 1, 3 * handle, 3 * handle), wait=True
                )
                spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[MIB])
                header = self.array_service.PutArrayRequest.Header(
                    parent=session, array_id=str(3 * handle + 2), spec=spec
                )
                messages = [
                    self.array_service.PutArrayRequest(header=header),
                    self.array_service.PutArrayRequest(data=bytes(MIB)),
                ]
                calls = [
                    compute.Execute(iter([request]), metadata=EVIL),
                    compute.Run.future(
                        self.compute.RunRequest(session=session, operation=self.fill(1000000 + handle)), metadata=EVIL
                    ),
                    arrays.PutArray.future(iter(messages), metadata=EVIL),
                    arrays.FetchArray(
                        self.array_service.FetchArrayRequest(name=f"{session}/arrays/{3 * handle + 1}"), metadata=EVIL
                    ),
                ]
                time.sleep(generator.choice((0, 0.0002, 0.001, 0.004)))
                generator.shuffle(calls)
                for a_call in calls:
                    a_call.cancel()
                if handle % 20 == 0:
                    self.close_session(session)
                    session = self.session()
            channel.close()
            self.close_session(session)
        self.attack(work)

    def test_killed_clients(self):
        def work(deadline):
            sessions = [self.session() for _ in range(2)]
            support = os.path.dirname(stubs.__file__)
            clients = [subprocess.Popen([sys.executable, "-c", UPLOADER.format(
                support=support, folder=self._stubs.name, session=session, handle="7", address=self.daemon.tcp)],
                stdout=subprocess.PIPE, text=True) for session in sessions]
            for client in clients:
                self.assertEqual(client.stdout.readline(), "under way\n")
            time.sleep(0.1)
            for client in clients:
                client.send_signal(signal.SIGKILL)
                client.wait()
                client.stdout.close()
        # No client deletes the sessions: they expire with their partial uploads.
        self.attack(work)

    def test_concurrent_creation_of_one_handle(self):
        """One of all streams that want it gets it."""
        def work(deadline):
            session = self.session()
            channels = [self.new_channel() for _ in range(4)]
            calls = [
                self.stub("ComputeService", channel).Execute(iter([self.request(session, self.fill(1))]), metadata=EVIL)
                for channel in channels
                for _ in range(8)
            ]
            codes = [reply.results[0].status.code for replies in calls for reply in replies]
            self.assertEqual(len(codes), 32)
            self.assertEqual(codes.count(0), 1)
            # And taken away while others use it.
            release = self.compute.ExecuteRequest(
                session=session,
                commands=[
                    self.compute.Command(release=self.compute.Release(handles=[1])),
                    self.compute.Command(operation=self.fill(1)),
                    self.compute.Command(operation=self.add(2)),
                    self.compute.Command(release=self.compute.Release(handles=[2])),
                    self.compute.Command(fetch=self.compute.Fetch(handle=1)),
                ]
                * 20,
            )
            calls = [
                self.stub("ComputeService", channel).Execute(iter([release]), metadata=EVIL) for channel in channels
            ]
            for replies in calls:
                self.assertEqual(sum(len(reply.results) for reply in replies), 100)
            for channel in channels:
                channel.close()
            self.close_session(session)
        self.attack(work)

    def test_sessions_deleted_in_use(self):
        def work(deadline):
            while time.monotonic() < deadline:
                session = self.session()
                calls = [
                    self.stub("ComputeService").Execute(
                        iter([self.request(session, *[self.fill(100 * i + j) for j in range(1, 20)], wait=True)]),
                        metadata=EVIL,
                    )
                    for i in range(4)
                ]
                self.close_session(session)
                for replies in calls:
                    self.code_of(lambda: list(replies))
        self.attack(work)

    def test_unread_job_watches(self):
        def work(deadline):
            jobs = self.stub("JobService")
            names = []
            while time.monotonic() < deadline:
                request = self.jobs.CreateJobRequest(job=self.jobs.Job(operations=[self.fill(1), self.add(2)]))
                names.append(jobs.CreateJob(request, metadata=EVIL).job.name)
                watch = jobs.WatchJob(self.jobs.WatchJobRequest(name=names[-1]), metadata=EVIL)
                self.code_of(lambda: jobs.CancelJob(self.jobs.CancelJobRequest(name=names[-1]), metadata=EVIL))
                watch.cancel()
            for name in names:
                self.code_of(lambda: jobs.DeleteJob(self.jobs.DeleteJobRequest(name=name), metadata=EVIL))
        self.attack(work)


if __name__ == "__main__":
    attack_case.main()
