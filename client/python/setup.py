"""Writes stubs into the wheel, for editors and type checkers: those of stride.v1's modules, which are made at import,
and those of all others, which type_stubs makes."""

import pathlib
import sys
from typing import Iterator

from google.protobuf import descriptor_pb2
from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import type_stubs  # noqa: E402

_Field = descriptor_pb2.FieldDescriptorProto
_NUMBERS = {
    _Field.TYPE_DOUBLE: "float",
    _Field.TYPE_FLOAT: "float",
    _Field.TYPE_BOOL: "bool",
    _Field.TYPE_STRING: "str",
    _Field.TYPE_BYTES: "bytes",
}


class _Types:
    """The .pyi text of one file's messages."""

    def __init__(self, file: descriptor_pb2.FileDescriptorProto):
        self._file = file

    def text(self) -> str:
        file = self._file
        lines = ["from typing import Any, List", "from google.protobuf import descriptor, message", ""]
        for dependency in file.dependency:
            module = dependency[:-len(".proto")].replace("/", ".") + "_pb2"
            if not module.startswith("google.rpc"):
                lines.append(f"import {module}")
        lines += ["", "DESCRIPTOR: descriptor.FileDescriptor", ""]
        for enum in file.enum_type:
            lines += self._enum(enum, "")
        for one in file.message_type:
            lines += self._message(one, "")
        return "\n".join(lines) + "\n"

    def _enum(self, enum, indent: str) -> Iterator[str]:
        yield f"{indent}class {enum.name}(int):"
        yield f"{indent}    @staticmethod"
        yield f"{indent}    def Name(number: int) -> str: ..."
        yield f"{indent}    @staticmethod"
        yield f"{indent}    def Value(name: str) -> int: ..."
        for value in enum.value:
            yield f"{indent}{value.name}: int"

    def _message(self, one, indent: str) -> Iterator[str]:
        yield f"{indent}class {one.name}(message.Message):"
        inner = indent + "    "
        yield f"{inner}DESCRIPTOR: descriptor.Descriptor"
        for enum in one.enum_type:
            yield from self._enum(enum, inner)
        for nested in one.nested_type:
            if not nested.options.map_entry:
                yield from self._message(nested, inner)
        for field in one.field:
            # Containers have more methods than a list or a dict, and those of messages others.
            repeated = field.label == _Field.LABEL_REPEATED
            yield f"{inner}{field.name}: {'Any' if repeated else self._type(field)}"
        yield f"{inner}def __init__(self, **fields: Any) -> None: ..."

    def _type(self, field) -> str:
        if field.type != _Field.TYPE_MESSAGE:
            return _NUMBERS.get(field.type, "int")
        name = field.type_name.lstrip(".")
        prefix = self._file.package + "."
        if name.startswith(prefix) and name[len(prefix):].split(".")[0] in {
            one.name for one in self._file.message_type
        }:
            return name[len(prefix):]
        return "Any"


def _service_types(file: descriptor_pb2.FileDescriptorProto) -> str:
    """The .pyi text of one file's service stubs. A method is a callable of grpc, which has no types of its own."""
    lines = ["from typing import Any", ""]
    for service in file.service:
        lines += [f"class {service.name}Stub:", "    def __init__(self, channel: Any) -> None: ..."]
        lines += [f"    {method.name}: Any" for method in service.method]
    return "\n".join(lines) + "\n"


class BuildWithTypes(build_py):
    def run(self):
        super().run()
        v1 = pathlib.Path(self.build_lib) / "stride/v1"
        type_stubs.write(v1.parent)
        files = descriptor_pb2.FileDescriptorSet.FromString((v1 / "contract.binpb").read_bytes())
        for file in files.file:
            if file.name.startswith("stride/v1/"):
                stem = pathlib.PurePosixPath(file.name).stem
                (v1 / f"{stem}_pb2.pyi").write_text(_Types(file).text())
                if file.service:
                    (v1 / f"{stem}_pb2_grpc.pyi").write_text(_service_types(file))


setup(cmdclass={"build_py": BuildWithTypes})
