"""The benchmarks, in parts that can be run alone. Each is one process that writes its rows to the file it is given."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    # The command, by the build's folder of programs, the file for the rows, and whether it has to be quick.
    command: Callable[[pathlib.Path, pathlib.Path, bool], list[str]]
    limit_s: int = 150
    # May be left out: a build without it has something else missing.
    optional: bool = False


_SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "python"


def _service(name):
    def command(bin, rows, quick):
        sizes = ["--mib=4", "--calls=100", "--rounds=2", "--elements=100000"] if quick else []
        return [str(bin / "service_bench"), f"--only={name}", f"--json={rows}", *sizes]

    return Part(name, command)


def _script(name, full=(), quick=()):
    def command(bin, rows, fast):
        return [sys.executable, str(_SCRIPTS / f"{name}.py"), "--json", str(rows), *(quick if fast else full)]

    return command


def _kernels(bin, rows, quick):
    sizes = ["--elements=100000", "--matrix=64", "--rounds=3"] if quick else ["--elements=4000000", "--rounds=9"]
    return [str(bin / "cpu_kernels_bench"), f"--json={rows}", *sizes]


def _operations(bin, rows, quick):
    sizes = ["--side=256", "--rounds=2"] if quick else ["--rounds=9"]
    return [str(bin / "cpu_operations_bench"), f"--json={rows}", *sizes]


def _device(bin, rows, quick):
    return [
        str(bin / "cuda_operations_bench"),
        f"--json={rows}",
        *(["--rounds=2", "--quick"] if quick else ["--rounds=15"]),
    ]


def _workers(bin, rows, quick):
    sizes = (
        ["--benchmark_repetitions=3", "--benchmark_min_time=0.02"]
        if quick
        else ["--benchmark_repetitions=9", "--benchmark_min_time=0.1"]
    )
    return [str(bin / "worker_bench"), f"--benchmark_out={rows}", "--benchmark_out_format=json", *sizes, str(bin)]


def _clients(bin, rows, quick):
    sizes = (
        ["--clients=1,10", "--duration=300ms"] if quick else ["--clients=1,10,100,1000", "--duration=5s", "--rounds=3"]
    )
    return [str(bin / "stride"), "bench", "clients", "-q", "-o", str(rows), *sizes]


PARTS = [
    *(
        _service(name)
        for name in ("latency", "chain", "programs", "transfer", "shared", "compute", "compile", "fairness", "tenants")
    ),
    Part("clients", _clients, limit_s=240),
    Part("kernels", _kernels, optional=True),
    Part("operations", _operations, optional=True),
    Part("device", _device, limit_s=240, optional=True),
    Part("workers", _workers, optional=True),
    Part(
        "peers",
        _script(
            "peers",
            [],
            [
                "--scale", "0.001", "--rounds", "1", "--seconds", "0.1", "--only",
                "trigonometric,sum,argsort,take,launch",
            ],
        ),
        limit_s=900,
    ),
    Part(
        "shards",
        _script(
            "shards",
            ["--columns", "20000"],
            ["--elements", "100000", "--rows", "64", "--columns", "4096", "--repeats", "3"],
        ),
        limit_s=200,
    ),
    Part("chains", _script("chain", [], ["--length", "50", "--repeats", "2"])),
    Part("replay", _script("program", ["--repeats", "15"], ["--length", "8", "--repeats", "2", "--ahead", "2"])),
]
