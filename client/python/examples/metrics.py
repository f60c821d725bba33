"""Live readings of every device, as NVDashboard shows them, and the daemon's queues.

    python3 metrics.py [SAMPLES]"""

import sys

import stride as st


def show(value, scale=1.0, unit=""):
    return "-" if value is None else f"{value * scale:.1f}{unit}"


def main(samples):
    with st.connect() as session:
        for moment in session.watch_devices(interval=0.2, max_samples=samples):
            for sample in moment:
                print(
                    f"{sample.device}: busy {show(sample.utilization_ratio, 100, ' %')}, memory "
                    f"{show(sample.memory_used_bytes, 2**-30, ' GiB')}, "
                    f"{show(sample.power_watts, 1, ' W')}, {sample.queue_depth} queued, {sample.array_bytes:,} "
                    "bytes of arrays"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
