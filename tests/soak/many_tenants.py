"""A thousand tenants with one array each on one daemon: all are served, no array is lost, a warm tenant is not slowed.

Usage: many_tenants.py STRIDED [--tenants N] [--device cuda|cpu] [--flag=...]...; prints one line of JSON and exits with
1 if a bound is exceeded. Not a test of ctest: an H100 takes about seven minutes, `ulimit -Hn` must be
8192 or more.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/python"))
import stubs  # noqa: E402
import tenant_crowd  # noqa: E402
from daemon_process import DaemonProcess  # noqa: E402

THREADS = 32
WARM_CALLS = 300
COLD_CALLS = 60
COLD_SECONDS = 1.5
# Tolerance of a warm tenant's median between two runs on a loaded machine, relative and absolute.
WARM_FACTOR, WARM_SECONDS = 1.25, 0.0005
STOP_SECONDS = 40


def warm_median(tenant):
    return statistics.median(tenant.compute() for _ in range(WARM_CALLS))


def report(text):
    """Prints progress, so that an interrupted run shows how far it came."""
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("strided")
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--round", type=int, help="how many of them compute again after all have entered; default all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments, flags = parser.parse_known_args()
    folder = tempfile.TemporaryDirectory()
    stubs.find_or_make(folder.name)
    count = arguments.tenants
    flags += [
        "--trust-tenant-header", f"--max-connections={2 * count + 100}",
        f"--max-connections-per-peer={2 * count + 100}", "--max-threads=4096", "--worker-idle-timeout=1h",
    ]
    if arguments.device == "cpu":
        flags.append("--cpu-devices=1x1")
    daemon = DaemonProcess(arguments.strided, flags, cuda=arguments.device == "cuda")
    row, failures = {"tenants": count, "device": arguments.device}, []
    try:
        warm = tenant_crowd.Tenant(daemon.unix, count)
        warm.put()
        row["warm_p50_alone"] = warm_median(warm)

        def enter(index):
            tenant = tenant_crowd.Tenant(daemon.unix, index)
            tenant.put()
            return tenant

        report(f"a warm tenant alone: {row['warm_p50_alone'] * 1e3:.2f} ms")
        begin = time.monotonic()
        tenants, errors = tenant_crowd.in_parallel(enter, range(count), THREADS)
        row["enter_seconds"], row["enter_errors"] = time.monotonic() - begin, len(errors)
        failures += [f"tenant {item}: {error}" for item, error in errors[:5]]
        report(f"{count} tenants entered in {row['enter_seconds']:.1f} s, {len(errors)} errors")
        tenants = [tenant for tenant in tenants if tenant is not None]
        # The array of each tenant, after nearly all workers have ended.
        begin = time.monotonic()
        again = tenants[: arguments.round]
        _, errors = tenant_crowd.in_parallel(lambda tenant: tenant.compute(), again, THREADS)
        row["round_seconds"], row["round_errors"] = time.monotonic() - begin, len(errors)
        failures += [f"tenant {tenant.index}: {error}" for tenant, error in errors[:5]]
        report(f"{len(again)} computed again in {row['round_seconds']:.1f} s, {len(errors)} errors")
        row["workers"], row["descriptors"] = len(daemon.workers()), daemon.descriptors()
        # Cold tenants, one after another, while a warm one continues.
        medians, stop = [], threading.Event()

        def stay_warm():
            while not stop.is_set():
                medians.append(warm.compute())

        warm.compute()
        thread = threading.Thread(target=stay_warm)
        thread.start()
        cold = [tenant.compute() for tenant in tenants[:COLD_CALLS]]
        stop.set()
        thread.join()
        row["cold_p50"], row["cold_max"] = statistics.median(cold), max(cold)
        row["warm_p50_beside_cold"] = statistics.median(medians)
        row["warm_p50_among_all"] = warm_median(warm)
        if row["cold_p50"] > COLD_SECONDS:
            failures.append(f"a cold tenant waits {row['cold_p50']:.2f} s")
        if row["warm_p50_among_all"] > max(WARM_FACTOR * row["warm_p50_alone"], row["warm_p50_alone"] + WARM_SECONDS):
            failures.append("a warm tenant's median has changed")
        if "does not serve" in daemon.log():
            failures.append("a device did not serve")
    finally:
        begin = time.monotonic()
        row["exit_code"] = daemon.stop()
        row["stop_seconds"] = time.monotonic() - begin
    if row["exit_code"] != 0 or row["stop_seconds"] > STOP_SECONDS:
        failures.append("SIGTERM did not end the daemon as it should")
    print(json.dumps(row))
    print("\n".join(failures) or "good", file=sys.stderr)
    if failures:
        print(daemon.log()[-4000:], file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
