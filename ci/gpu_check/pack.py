"""ci/gpu build: from a checkout to dist/gpu."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from gpu_check import manifest
from gpu_check.paths import BUILD, DIST, PACK, ROOT

# Without the CPU device: its compiler holds LLVM and is larger than all of these.
_PRODUCTS = ["strided", "stride", "stride-worker-cuda", "stride-demo"]
_BENCHMARKS = ["service_bench", "worker_bench", "cuda_operations_bench"]
_LABEL = "gpu"
# The code that the product brings for the GPU machine (docs/decisions/0048).
_TARGET = os.environ.get("STRIDE_GPU_TARGET", "cuda:sm_90")
_PRECOMPILED = BUILD / "precompiled-gpu"
# Libraries of every Linux; other shared libraries are packed.
_SYSTEM_LIBRARIES = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so",
                     "libstdc++.so", "libgcc_s.so")  # fmt: skip
# Size limit of one upload to a GPU machine.
_LIMIT_BYTES = 60 << 20


def build() -> int:
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    subprocess.run(["cmake", "--preset", "portable"], cwd=ROOT, check=True)
    targets = [*_PRODUCTS, *_BENCHMARKS, "stride-precompile", f"tests-{_LABEL}"]
    subprocess.run(["cmake", "--build", "--preset", "portable", "-j", jobs, "-t", *targets], cwd=ROOT, check=True)
    tests = manifest.tests_of(BUILD, ROOT, {_LABEL})
    if not tests:
        print(f"gpu: no test carries the label {_LABEL}")
        return 1
    # Named for the worker's build, which `strip` keeps.
    subprocess.run([str(BUILD / "bin" / "stride-precompile"), f"--workers={BUILD / 'bin'}",
                    f"--output={_PRECOMPILED}", f"--targets={_TARGET}", f"--jobs={jobs}"], check=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        return _pack(pathlib.Path(folder), tests)


def _pack(folder: pathlib.Path, tests: list[manifest.Test]) -> int:
    (folder / "bin").mkdir()
    programs = _programs(tests)
    for program in programs:
        subprocess.run(["strip", "-o", str(folder / "bin" / program.name), str(program)], check=True)
    _copy_libraries(programs, folder / "lib")
    shutil.copytree(_PRECOMPILED, folder / "bin" / "precompiled")
    # The Python client with its stubs, as its tests import it.
    if (BUILD / "python").exists():
        shutil.copytree(BUILD / "python", folder / "python", ignore=shutil.ignore_patterns("__pycache__"))
    manifest.save(tests, folder / "manifest.json")

    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    # Each program holds the same static libraries: a dictionary as large as all of them stores those once.
    mebibytes = 1 + sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 2**20
    with open(PACK, "wb") as out:
        tar = subprocess.Popen(["tar", "-C", str(folder), "--sort=name", "-c", "."], stdout=subprocess.PIPE)
        # Preset 1: a third of the time of preset 6, a tenth more bytes.
        filters = f"--lzma2=preset=1,nice=273,dict={mebibytes}MiB"
        subprocess.run(["xz", "-T1", filters], stdin=tar.stdout, stdout=out, check=True)
        if tar.wait() != 0:
            raise RuntimeError("tar failed")
    return _report(folder, tests)


def _programs(tests: list[manifest.Test]) -> list[pathlib.Path]:
    """Products, benchmarks, and whatever of the build tree the tests start."""
    named = [BUILD / "bin" / name for name in [*_PRODUCTS, *_BENCHMARKS]]
    started = [pathlib.Path(word.replace(manifest.BUILD, str(BUILD))) for test in tests for word in test.command]
    found = {path for path in [*named, *started] if path.is_file()}
    return sorted(path for path in found if path.parent == BUILD / "bin")


def _copy_libraries(programs: list[pathlib.Path], folder: pathlib.Path) -> None:
    folder.mkdir()
    for program in programs:
        listing = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
        for line in listing.splitlines():
            name, _, where = line.strip().partition(" => ")
            path = where.split(" (")[0]
            if path.startswith("/") and not name.startswith(_SYSTEM_LIBRARIES):
                shutil.copy(path, folder / name)


def _report(folder: pathlib.Path, tests: list[manifest.Test]) -> int:
    size = PACK.stat().st_size
    libraries = sorted(path.name for path in (folder / "lib").iterdir())
    print(f"gpu: {PACK.relative_to(ROOT)}: {size / 2**20:.1f} MiB, {len(tests)} tests")
    print(f"gpu: shared libraries that travel along: {', '.join(libraries) or 'none'}")
    if size <= _LIMIT_BYTES:
        return 0
    largest = sorted((folder / "bin").iterdir(), key=lambda path: -path.stat().st_size)[:8]
    print(f"gpu: FAILED: larger than {_LIMIT_BYTES >> 20} MiB; the largest, unpacked:")
    for path in largest:
        print(f"  {path.stat().st_size / 2**20:7.1f} MiB  {path.name}")
    return 1
