"""Makes the protobuf and gRPC stubs from proto/stride/v1 while building; they travel in the wheel."""

import pathlib
import re

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
# In the repository; an sdist carries a copy beside this file.
PROTO = next((p for p in (HERE / "proto", HERE.parents[1] / "proto") if p.is_dir()), HERE / "proto")
RPC = ("google/rpc/status.proto", "google/rpc/error_details.proto")


def _compile(arguments):
    from grpc_tools import protoc

    if protoc.main(["protoc", *arguments]) != 0:
        raise SystemExit("the .proto files do not compile")


def _rewrite(folder, pattern, replacement):
    for file in folder.glob("*.py"):
        file.write_text(re.sub(pattern, replacement, file.read_text(), flags=re.MULTILINE))


def make_stubs(out):
    """Compiles the contract into `out`/stride/v1 and google.rpc, which googleapis-common-protos may not be there to give, into stride/_rpc."""
    import google
    import grpc_tools

    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    roots = [pathlib.Path(p).parent for p in google.__path__ if (pathlib.Path(p) / "rpc/status.proto").exists()]
    includes = [f"-I{PROTO}", *(f"-I{p}" for p in roots), f"-I{well_known}"]
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(p.relative_to(PROTO).as_posix() for p in (PROTO / "stride/v1").glob("*.proto"))
    _compile([*includes, f"--python_out={out}", f"--grpc_python_out={out}", f"--pyi_out={out}", *sources])
    _compile([*includes, f"--python_out={out}", *RPC])
    v1, rpc = out / "stride/v1", out / "stride/_rpc"
    rpc.mkdir(exist_ok=True)
    for name in ("status_pb2", "error_details_pb2"):
        (out / f"google/rpc/{name}.py").replace(rpc / f"_{name}.py")
        # One program may hold each google.rpc message once: whoever has them already gives them to us.
        (rpc / f"{name}.py").write_text(
            f"try:\n    from google.rpc.{name} import *  # noqa: F401,F403\n    from google.rpc.{name} import DESCRIPTOR  # noqa: F401\n"
            f"except ImportError:\n    from stride._rpc._{name} import *  # noqa: F401,F403\n"
            f"    from stride._rpc._{name} import DESCRIPTOR  # noqa: F401\n")
    (out / "google/rpc").rmdir()
    (out / "google").rmdir()
    # The services' files do not need their grpc counterparts, nor those of messages alone.
    for file in v1.glob("*_pb2_grpc.py"):
        if "Stub" not in file.read_text():
            file.unlink()
    for file in (*v1.glob("*.py"), *v1.glob("*.pyi")):
        file.write_text(re.sub(r"^from google\.rpc import", "from stride._rpc import", file.read_text(), flags=re.MULTILINE))
    for folder in (v1, rpc):
        (folder / "__init__.py").write_text("")


class BuildWithStubs(build_py):
    def run(self):
        super().run()
        make_stubs(pathlib.Path(self.build_lib))


def requirements():
    """The stubs ask for no older protobuf and grpcio than those that made them."""
    from importlib.metadata import version

    return [f"grpcio>={version('grpcio')}", f"protobuf>={version('protobuf')}", "numpy>=2.0"]


setup(cmdclass={"build_py": BuildWithStubs}, install_requires=requirements())
