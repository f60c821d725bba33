"""More tenants at once than a daemon with few descriptors has room for."""

import resource
import tempfile
import time
import unittest

import attack_case
import stubs
import tenant_crowd
from daemon_process import DaemonProcess

TENANTS = 150
DESCRIPTORS = 1024
THREADS = 16
# The most that a busy machine may take; the daemon's own limit is 30 s of drain and 10 s of stopping.
STOP_SECONDS = 45


class CrowdTest(unittest.TestCase):
    def test_tenant_above_the_limit_does_not_affect_other_tenants(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        stubs.make(folder.name)
        # The daemon raises its own limit to the hard one.
        daemon = DaemonProcess(attack_case.STRIDED, ["--cpu-devices=1x1", "--trust-tenant-header"],
                               preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
        try:
            self.assertIn(f"limits: {DESCRIPTORS} file descriptors", daemon.log())

            def enter(index):
                tenant = tenant_crowd.Tenant(daemon.unix, index)
                tenant.put()
                return tenant

            tenants, errors = tenant_crowd.in_parallel(enter, range(TENANTS), THREADS)
            self.assertEqual(errors, [], daemon.log())
            for _ in range(2):
                _, errors = tenant_crowd.in_parallel(lambda tenant: tenant.compute(), tenants, THREADS)
                self.assertEqual(errors, [], daemon.log())
            self.assertLess(daemon.descriptors(), DESCRIPTORS - 60)
            self.assertLess(len(daemon.workers()), TENANTS)
            log = daemon.log()
            self.assertNotIn("does not serve", log)
            self.assertNotIn("connections refused", log)
            for tenant in tenants:
                tenant.close()
        finally:
            begin = time.monotonic()
            code = daemon.stop()
        self.assertEqual(code, 0, daemon.log())
        self.assertLess(time.monotonic() - begin, STOP_SECONDS)


if __name__ == "__main__":
    attack_case.main()
