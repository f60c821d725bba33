"""The style rules proto/README.md promises: buf's STANDARD set, as far as a descriptor shows them."""

import re
from collections.abc import Iterator

from google.protobuf import descriptor_pb2

_LOWER_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_UPPER_SNAKE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
_PASCAL = re.compile(r"([A-Z][a-z0-9]*)+")
_VERSIONED_PACKAGE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*\.v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")

# Options that code generators need in every file.
_LANGUAGE_OPTIONS = (
    "csharp_namespace", "go_package", "java_package", "java_multiple_files", "objc_class_prefix", "php_namespace",
    "ruby_package",
)


def lint(files: descriptor_pb2.FileDescriptorSet) -> list[str]:
    problems = [problem for file in files.file for problem in _lint_file(file)]
    return problems + list(_lint_messages_of_rpcs(files))


def _lint_file(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    where = file.name
    stem = where.rsplit("/", 1)[-1].removesuffix(".proto")
    if not _LOWER_SNAKE.fullmatch(stem):
        yield f"{where}: the file name is not lower_snake_case"
    if file.syntax != "proto3":
        yield f"{where}: the syntax is not proto3"
    if not _VERSIONED_PACKAGE.fullmatch(file.package):
        yield f"{where}: package {file.package} does not end in a version"
    if where.rsplit("/", 1)[0] != file.package.replace(".", "/"):
        yield f"{where}: package {file.package} does not match its folder"
    for option in _LANGUAGE_OPTIONS:
        if not file.options.HasField(option):
            yield f"{where}: {option} is missing; without it that language's generator fails or chooses names by itself"
    if file.public_dependency:
        yield f"{where}: public imports are not used"
    for message in file.message_type:
        yield from _lint_message(message, file.package)
    for enum in file.enum_type:
        yield from _lint_enum(enum, file.package)
    for service in file.service:
        yield from _lint_service(service, file.package)


def _lint_message(message, scope: str) -> Iterator[str]:
    name = f"{scope}.{message.name}"
    if message.options.map_entry:
        return
    if not _PASCAL.fullmatch(message.name):
        yield f"{name}: the message name is not PascalCase"
    for field in message.field:
        if not _LOWER_SNAKE.fullmatch(field.name):
            yield f"{name}.{field.name}: the field name is not lower_snake_case"
    for oneof in message.oneof_decl:
        # Explicit presence makes a hidden oneof whose name starts with an underscore.
        if not oneof.name.startswith("_") and not _LOWER_SNAKE.fullmatch(oneof.name):
            yield f"{name}.{oneof.name}: the oneof name is not lower_snake_case"
    for nested in message.nested_type:
        yield from _lint_message(nested, name)
    for enum in message.enum_type:
        yield from _lint_enum(enum, name)


def _lint_enum(enum, scope: str) -> Iterator[str]:
    name = f"{scope}.{enum.name}"
    prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", enum.name).upper() + "_"
    if not _PASCAL.fullmatch(enum.name):
        yield f"{name}: the enum name is not PascalCase"
    if enum.options.allow_alias:
        yield f"{name}: aliases are not used"
    for value in enum.value:
        if not _UPPER_SNAKE.fullmatch(value.name):
            yield f"{name}.{value.name}: the value is not UPPER_SNAKE_CASE"
        if not value.name.startswith(prefix):
            yield f"{name}.{value.name}: the value does not start with {prefix}"
        if value.number == 0 and value.name != f"{prefix}UNSPECIFIED":
            yield f"{name}.{value.name}: the zero value is not {prefix}UNSPECIFIED"


def _lint_service(service, package: str) -> Iterator[str]:
    name = f"{package}.{service.name}"
    if not _PASCAL.fullmatch(service.name) or not service.name.endswith("Service"):
        yield f"{name}: the service name is not PascalCase ending in Service"
    bare = service.name.removesuffix("Service")
    for method in service.method:
        if not _PASCAL.fullmatch(method.name):
            yield f"{name}.{method.name}: the rpc name is not PascalCase"
        for kind, type_name in (("Request", method.input_type), ("Response", method.output_type)):
            allowed = (f"{method.name}{kind}", f"{bare}{method.name}{kind}", f"{service.name}{method.name}{kind}")
            if type_name.rsplit(".", 1)[-1] not in allowed:
                yield f"{name}.{method.name}: {type_name.lstrip('.')} is not named {allowed[0]}"


def _lint_messages_of_rpcs(files: descriptor_pb2.FileDescriptorSet) -> Iterator[str]:
    """No message serves two rpcs, so that each can grow alone."""
    users: dict[str, str] = {}
    for file in files.file:
        for service in file.service:
            for method in service.method:
                for type_name in (method.input_type, method.output_type):
                    rpc = f"{service.name}.{method.name}"
                    first = users.setdefault(type_name, rpc)
                    if first != rpc or method.input_type == method.output_type:
                        yield f"{rpc}: {type_name.lstrip('.')} is also used by {first}"
