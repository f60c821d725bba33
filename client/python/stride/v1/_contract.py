"""Makes modules from descriptors, like protoc's Python output and its gRPC plugin."""

import importlib
import pathlib
import sys
import types
from typing import Dict

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal import builder

_FILE = pathlib.Path(__file__).with_name("contract.binpb")
_modules: Dict[str, types.ModuleType] = {}


def load(package: str) -> None:
    """Makes every module of the contract importable from `package`. google.rpc's are apart: `module`."""
    # Dependencies come before what imports them.
    for file in descriptor_pb2.FileDescriptorSet.FromString(_FILE.read_bytes()).file:
        if file.name.startswith("google/protobuf/"):
            continue  # protobuf has them
        for dependency in file.dependency:
            if dependency.startswith("google/protobuf/"):
                importlib.import_module(dependency[:-len(".proto")].replace("/", ".") + "_pb2")
        stem = pathlib.PurePosixPath(file.name).stem
        if file.name.startswith("google/rpc/"):
            _modules[stem] = _standard_messages(file)
            continue
        messages = _messages(f"{package}.{stem}_pb2", _register(file))
        _put(package, messages)
        if file.service:
            _put(package, _stubs(f"{package}.{stem}_pb2_grpc", messages.DESCRIPTOR))


def module(name: str) -> types.ModuleType:
    """google.rpc's: `status` or `error_details`."""
    return _modules[name]


def _register(file: descriptor_pb2.FileDescriptorProto):
    return descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


def _standard_messages(file: descriptor_pb2.FileDescriptorProto) -> types.ModuleType:
    """A program may register each google.rpc message once, so another package's messages are used if it has them."""
    stem = pathlib.PurePosixPath(file.name).stem
    try:
        return importlib.import_module(f"google.rpc.{stem}_pb2")
    except Exception:  # not there, or made for another protobuf
        pass
    try:
        descriptor = _register(file)
    except TypeError:  # another version of it is registered already
        descriptor = descriptor_pool.Default().FindFileByName(file.name)
    return _messages(f"stride.v1._{stem}_pb2", descriptor)


def _messages(name: str, descriptor) -> types.ModuleType:
    made = types.ModuleType(name, f"{descriptor.name}")
    made.DESCRIPTOR = descriptor  # type: ignore[attr-defined]
    builder.BuildMessageAndEnumDescriptors(descriptor, made.__dict__)
    builder.BuildTopDescriptorsAndMessages(descriptor, name, made.__dict__)
    return made


def _stubs(name: str, descriptor) -> types.ModuleType:
    made = types.ModuleType(name, f"The services of {descriptor.name}.")
    for service in descriptor.services_by_name.values():
        stub = _stub(service, name)
        setattr(made, stub.__name__, stub)
    return made


def _stub(service, module_name: str) -> type:
    from google.protobuf import message_factory

    calls = []
    for method in service.methods:
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        request, response = (message_factory.GetMessageClass(one) for one in (method.input_type, method.output_type))
        calls.append(
            (method.name, kind, f"/{service.full_name}/{method.name}", request.SerializeToString, response.FromString)
        )

    def __init__(self, channel):
        for name, kind, path, serialize, parse in calls:
            setattr(self, name, getattr(channel, kind)(path, request_serializer=serialize, response_deserializer=parse))

    return type(
        f"{service.name}Stub",
        (),
        {"__init__": __init__, "__module__": module_name, "__doc__": f"The calls of {service.full_name}."},
    )


def _put(package: str, made: types.ModuleType) -> None:
    sys.modules[made.__name__] = made
    setattr(sys.modules[package], made.__name__.rpartition(".")[2], made)
