"""The service's Python stubs, generated from the .proto files into a folder of the caller."""

import importlib
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def make(folder):
    """Compiles proto/stride/v1 into `folder` and makes it importable. Needs grpc_tools and googleapis-common-protos."""
    import google.rpc.status_pb2
    import grpc_tools
    from grpc_tools import protoc

    site = pathlib.Path(google.rpc.status_pb2.__file__).parents[2]
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    protos = sorted(str(p.relative_to(ROOT / "proto")) for p in (ROOT / "proto/stride/v1").glob("*.proto"))
    code = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{site}", f"-I{well_known}",
                        f"--python_out={folder}", f"--grpc_python_out={folder}", *protos])
    if code != 0:
        raise RuntimeError("the .proto files do not compile")
    use(folder)


def find_or_make(folder):
    """The same modules from the Python client where it is importable, else compiled into `folder`."""
    if importlib.util.find_spec("stride") is None:
        make(folder)


def use(folder):
    sys.path.insert(0, str(folder))


def module(name):
    """Such as `array_pb2`."""
    return importlib.import_module(f"stride.v1.{name}")
