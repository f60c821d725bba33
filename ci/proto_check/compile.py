"""From .proto files to a descriptor set."""

import importlib.resources
import pathlib
import tempfile

from google.protobuf import descriptor_pb2
from grpc_tools import protoc


def compile_protos(root: pathlib.Path) -> descriptor_pb2.FileDescriptorSet:
    """The files of our own contract under root, in order of their names, without what they import and without source positions.

    `grpc/` and `google/` hold standard messages and services, whose shape is not ours to choose.

    Raises ValueError when they do not compile; the compiler has then printed why.
    """
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    files = [name for name in names if not name.startswith(("grpc/", "google/"))]
    if not files:
        raise ValueError(f"no .proto files under {root}")
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.NamedTemporaryFile(suffix=".binpb") as out:
        arguments = ["protoc", f"-I{root}", f"-I{well_known}"]
        if protoc.main([*arguments, f"--descriptor_set_out={out.name}", *files]) != 0:
            raise ValueError("the .proto files do not compile")
        return normalized(descriptor_pb2.FileDescriptorSet.FromString(out.read()))


def normalized(files: descriptor_pb2.FileDescriptorSet) -> descriptor_pb2.FileDescriptorSet:
    """Sorted by file name, so that equal contracts are equal bytes."""
    return descriptor_pb2.FileDescriptorSet(file=sorted(files.file, key=lambda file: file.name))
