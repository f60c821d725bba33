"""The first use of each line of a page (tests/python/first_use_page.py): what it takes on a fresh daemon with no
compiled code, and how many codes it compiled.

    PYTHONPATH=<built package> python first_use.py STRIDED [--cuda] [--rows] [--tiers]

Each line of the page runs once and its result is fetched. A daemon of its own starts with an empty cache. With
`--tiers`, also the least time of a call by blocks and with code of its own."""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

import stride as st
from stride._daemon import PrivateDaemon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/python"))
from first_use_page import GROUPS, PAGE, variables  # noqa: E402

def compiled(folder):
    """The number and bytes of the codes that this daemon compiled."""
    files = list(pathlib.Path(folder).rglob("*.module"))
    return len(files), sum(file.stat().st_size for file in files)


# Expressions of float32 `v`, each with its number of elements.
TIERS = [("v + 1.5", 1000), ("st.sqrt(v * v + 1) / (2 + v)", 1000), ("st.sin(v) * st.cos(v)", 1000),
         ("v + 1.5", 10 ** 6), ("st.sqrt(v * v + 1) / (2 + v)", 10 ** 6), ("v - v.T * 2", 1000 ** 2),
         ("st.sqrt(v * v + 1) / (2 + v)", 10 ** 7), ("st.sin(v) ** 2 - v", 10 ** 7)]


def compare_tiers(folder):
    def call(values):
        start = time.perf_counter()
        eval(text, values).block_until_ready()
        return time.perf_counter() - start

    for number, (text, count) in enumerate(TIERS):
        # a shape that needs new code, if the layout is part of the code
        shape = (1000, 1000) if ".T" in text else (count + number,)
        values = {"st": st, "v": st.array(np.linspace(0.1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))}
        values["v"].block_until_ready()
        before = compiled(folder)[0]
        # A million elements are worth a compilation, so that only the first call runs by blocks.
        by_blocks = [call(values) for _ in range(100 if count < 10 ** 4 else 1)]
        waited = compiled(folder)[0] > before
        deadline = time.perf_counter() + 20
        while compiled(folder)[0] == before and time.perf_counter() < deadline:
            call(values)
        time.sleep(0.5)
        own = [call(values) for _ in range(100)]
        note = " (compiled already when the first calls ended)" if waited else ""
        print(f"{text:32} {count:9}: by blocks {min(by_blocks) * 1e6:9.0f} us, own code {min(own) * 1e6:9.0f} us, "
              f"ratio {min(by_blocks) / min(own):5.2f}{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strided")
    parser.add_argument("--rows", action="store_true", help="print each line's time")
    parser.add_argument("--cuda", action="store_true", help="on the first GPU; default: a CPU device of two threads")
    parser.add_argument("--tiers", action="store_true", help="compare both tiers of some expressions")
    arguments = parser.parse_args()
    flags = [] if arguments.cuda else ["--no-cuda", "--cpu-devices=1x2"]
    with tempfile.TemporaryDirectory() as folder:
        daemon = PrivateDaemon(arguments.strided, [*flags, f"--cache-dir={folder}"])
        try:
            with st.connect(daemon.address, timeout=120, device="cuda:0" if arguments.cuda else None):
                names, times, per_line = variables(), [], []
                np.asarray(names["x"])
                begin = time.perf_counter()
                for line in PAGE:
                    before = compiled(folder)[0]
                    start = time.perf_counter()
                    np.asarray(eval(line, names))
                    times.append(time.perf_counter() - start)
                    per_line.append(compiled(folder)[0] - before)
                    if arguments.rows:
                        print(f"{times[-1] * 1e3:9.1f} ms {compiled(folder)[0] - before:3d}  {line}")
                seconds = time.perf_counter() - begin
                number, size = compiled(folder)
                if arguments.tiers:
                    compare_tiers(folder)
        finally:
            daemon.stop()
    done = 0
    for group, lines in GROUPS.items():
        part = slice(done, done + len(lines))
        done += len(lines)
        print(f"{group:16} {len(lines):4} lines {sum(times[part]):7.2f} s, {sum(per_line[part])} codes compiled")
    print(f"{len(PAGE)} lines: {seconds:.2f} s, a line {statistics.median(times) * 1e3:.1f} ms (median), "
          f"{max(times) * 1e3:.0f} ms (most); {number} codes compiled, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
