"""Parts of the GPU machine: CUDA's libraries, and the tools next to them."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13",
              "libcusolver.so.12", "libcusparse.so.12", "libnvJitLink.so.13", "libcufft.so.12")


def library_folders() -> dict[str, str]:
    """Library -> the folder that holds it, for those found. Toolkits first, then the packages of any Python."""
    site_packages = {sysconfig.get_paths()["purelib"], *sys.path}
    patterns = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/lib64",
                "/usr/local/cuda*/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu",
                *(f"{site}/nvidia/*/lib" for site in sorted(site_packages)),
                "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib"]  # fmt: skip
    folders = [folder for pattern in patterns for folder in sorted(glob.glob(pattern))]
    found = {}
    for library in _LIBRARIES:
        holder = next((folder for folder in folders if os.path.exists(f"{folder}/{library}")), None)
        if holder:
            found[library] = holder
    return found


def environment(unpacked: pathlib.Path) -> dict[str, str]:
    """This process's environment with what the packed programs need."""
    folders = library_folders()
    # The system's folder is searched anyway, and named here it would shadow the toolkit's.
    path = [str(unpacked / "lib"), *dict.fromkeys(f for f in folders.values() if f != "/usr/lib/x86_64-linux-gnu")]
    result = dict(os.environ)
    if already := result.get("LD_LIBRARY_PATH"):
        path.append(already)
    result["LD_LIBRARY_PATH"] = ":".join(path)
    result["PATH"] = f"{unpacked}/bin:{result['PATH']}"
    result["STRIDE_WORKER_DIR"] = f"{unpacked}/bin"
    return result


def missing_libraries() -> list[str]:
    found = library_folders()
    return [library for library in _LIBRARIES if library not in found]


def gpus() -> list[str]:
    """One line a GPU as nvidia-smi names it; empty when there is none."""
    tool = shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"
    if not os.path.exists(tool):
        return []
    listed = subprocess.run(
        [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    return listed.stdout.splitlines() if listed.returncode == 0 else []


def compute_sanitizer() -> str | None:
    return shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")), None)
