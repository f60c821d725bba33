"""From .proto files to a descriptor set."""

import importlib.resources
import pathlib
import tempfile

from google.protobuf import descriptor_pb2
from grpc_tools import protoc


def compile_protos(root: pathlib.Path) -> descriptor_pb2.FileDescriptorSet:
    """The files of our own contract under root, in order of their names, without imports and source positions.

    `grpc/` and `google/` hold standard messages and services, whose shape is not ours to choose.

    Raises ValueError when they do not compile; the compiler has then printed why.
    """
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    files = [name for name in names if not name.startswith(("grpc/", "google/"))]
    if not files:
        raise ValueError(f"no .proto files under {root}")
    return normalized(_compile(root, files))


def compile_for_client(root: pathlib.Path) -> descriptor_pb2.FileDescriptorSet:
    """The files that a client needs to make its messages: our own and google/rpc, each after its imports."""
    files = sorted(
        str(path.relative_to(root)) for folder in ("google/rpc", "stride") for path in (root / folder).rglob("*.proto")
    )
    compiled = _compile(root, files, "--include_imports")
    return descriptor_pb2.FileDescriptorSet(
        file=[file for file in compiled.file if not file.name.startswith("google/protobuf/")]
    )


def _compile(root: pathlib.Path, files: list[str], *options: str) -> descriptor_pb2.FileDescriptorSet:
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.NamedTemporaryFile(suffix=".binpb") as out:
        arguments = ["protoc", f"-I{root}", f"-I{well_known}"]
        if protoc.main([*arguments, *options, f"--descriptor_set_out={out.name}", *files]) != 0:
            raise ValueError("the .proto files do not compile")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read())


def normalized(files: descriptor_pb2.FileDescriptorSet) -> descriptor_pb2.FileDescriptorSet:
    """Sorted by file name, so that equal contracts are equal bytes."""
    return descriptor_pb2.FileDescriptorSet(file=sorted(files.file, key=lambda file: file.name))
