"""The machine and the versions, so that a number can be judged later."""

import datetime
import os
import pathlib
import platform
import subprocess


def date():
    """The current date and time, in UTC and ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _output(*command, cwd=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd=cwd).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _field(path, name):
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == name), "")


def describe(root, daemon):
    """Facts about the machine and the build that a reader of the rows needs."""
    return {
        "date": date(),
        "version": _output(str(daemon), "--version"),
        "commit": _output("git", "describe", "--always", "--dirty", cwd=root),
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "gpus": _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def line(machine):
    gpus = ", ".join(machine["gpus"]) or "no GPU"
    return (
        f"{machine['version'] or 'stride'} ({machine['commit'] or 'no git'}), {machine['date']}: "
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{gpus}, Linux {machine['kernel']}, load {machine['load_before']}"
    )
