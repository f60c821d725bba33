"""A descriptor set as a flat table: one row for each thing a client can depend on."""

from collections.abc import Iterator

from google.protobuf import descriptor_pb2

# The content of a row, as named facts: {"name": "session", "type": "string", ...}.
Facts = dict[str, object]

_Field = descriptor_pb2.FieldDescriptorProto


def contract(files: descriptor_pb2.FileDescriptorSet) -> dict[str, Facts]:
    """Rows by a key that survives what clients survive: a field's key is its number, so a new name is a changed row."""
    return {key: facts for file in files.file for key, facts in _file_rows(file)}


def _file_rows(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, Facts]]:
    package = file.package
    for message in file.message_type:
        yield from _message_rows(message, package, file.name)
    for enum in file.enum_type:
        yield from _enum_rows(enum, package, file.name)
    for service in file.service:
        yield from _service_rows(service, package, file.name)


def _message_rows(message, scope: str, file: str) -> Iterator[tuple[str, Facts]]:
    name = f"{scope}.{message.name}"
    yield f"message {name}", {"file": file, "map entry": message.options.map_entry}
    for field in message.field:
        yield f"field {name} = {field.number}", _field_facts(field, message)
    yield from _reserved_rows(message, name)
    for nested in message.nested_type:
        yield from _message_rows(nested, name, file)
    for enum in message.enum_type:
        yield from _enum_rows(enum, name, file)


def _field_facts(field: _Field, message) -> Facts:
    oneof = None
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = message.oneof_decl[field.oneof_index].name
    packed = field.options.packed if field.options.HasField("packed") else "default"
    return {
        "name": field.name,
        "JSON name": field.json_name,
        "type": field.type_name.lstrip(".") or _Field.Type.Name(field.type).removeprefix("TYPE_").lower(),
        "kind": _Field.Type.Name(field.type),
        "label": _Field.Label.Name(field.label).removeprefix("LABEL_").lower(),
        "explicit presence": field.proto3_optional,
        "oneof": oneof,
        "packed": packed,
    }


def _enum_rows(enum, scope: str, file: str) -> Iterator[tuple[str, Facts]]:
    name = f"{scope}.{enum.name}"
    yield f"enum {name}", {"file": file}
    for value in enum.value:
        yield f"enum value {name} = {value.number}", {"name": value.name}
    yield from _reserved_rows(enum, name)


def _reserved_rows(holder, name: str) -> Iterator[tuple[str, Facts]]:
    for span in holder.reserved_range:
        yield f"reserved numbers {name} {span.start}..{span.end}", {}
    for reserved in holder.reserved_name:
        yield f"reserved name {name} {reserved}", {}


def _service_rows(service, package: str, file: str) -> Iterator[tuple[str, Facts]]:
    name = f"{package}.{service.name}"
    yield f"service {name}", {"file": file}
    for method in service.method:
        yield f"rpc {name}.{method.name}", {
            "request": method.input_type.lstrip("."),
            "response": method.output_type.lstrip("."),
            "client streaming": method.client_streaming,
            "server streaming": method.server_streaming,
        }
