"""The checks of compute-sanitizer, and how its reports are read."""

import dataclasses
import pathlib
import re
import time

# Faults on purpose, more memory than its shadow leaves, and a measurement.
_NOT_UNDER_IT = ["FaultTest.*", "LargeTest.*", "OrderTest.PrintsLatency"]
# Kernels of ours whose threads work together.
_SHARING = ["ReduceTest.*", "MatmulTest.*", "KernelTest.BlocksShare*", "KernelTest.DynamicShared*", "KernelTest.Lanes*"]
# Tests provoke refusals by the driver, and the worker handles them; only the memory of kernels is checked.
_OPTIONS = ["--report-api-errors=no", "--target-processes=all", "--error-exitcode=99"]


@dataclasses.dataclass(frozen=True)
class Check:
    tool: str
    gtest_filter: str
    limit: float = 240


CONFORMANCE = [
    Check("memcheck", "-" + ":".join(_NOT_UNDER_IT)),
    Check("racecheck", ":".join(_SHARING)),
    Check("synccheck", ":".join(_SHARING)),
    # Scratch memory and partial results: a kernel must read only written memory. Not MatmulTest: cuBLAS's own kernels
    # trap under initcheck (CUDA error 719, seen on an H100).
    Check("initcheck", "ReduceTest.*"),
]


def command(tool: str, check: Check, program: list[str]) -> list[str]:
    return [tool, f"--tool={check.tool}", *_OPTIONS, *program]


def wrapped_worker(folder: pathlib.Path, tool: str, worker: pathlib.Path, logs: pathlib.Path) -> None:
    """Makes a folder of workers in which the one that serves a device runs under memcheck. A daemon clears its workers'
    environment, and compilers and listings use no device: so the sanitizer starts the one process that does, not the
    daemon."""
    folder.mkdir()
    script = folder / "stride-worker-cuda"
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --serve ] || exec "{worker}" "$@"\n'
        f'exec "{tool}" --tool=memcheck {" ".join(_OPTIONS)} --log-file="{logs}/worker.%p.txt" "{worker}" "$@"\n'
    )
    script.chmod(0o755)


def why_bad(report: str) -> str:
    """Empty when the report is that of a whole run that found nothing."""
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", report)
    if any(int(count) for count in summaries):
        return f"found {max(int(count) for count in summaries)}"
    return "" if summaries else "no summary by the sanitizer"


def worker_reports(logs: pathlib.Path, patience: float) -> tuple[int, list[str]]:
    """The number of whole reports, and the errors in any report. A killed worker has no summary; its errors until then
    are in its report. Reports are complete a moment after their daemon has ended."""
    end = time.monotonic() + patience
    while True:
        reports = {path.name: path.read_text(errors="replace") for path in sorted(logs.glob("worker.*.txt"))}
        whole = [text for text in reports.values() if "ERROR SUMMARY" in text]
        if len(whole) == len(reports) or time.monotonic() > end:
            break
        time.sleep(0.2)
    bad = []
    for name, text in reports.items():
        if re.search(r"=========\s+(Invalid|Misaligned|Program hit|Fatal|Error:|Internal)", text):
            bad.append(f"{name}: errors")
        elif "ERROR SUMMARY" in text and why_bad(text):
            bad.append(f"{name}: {why_bad(text)}")
    return len(whole), bad
