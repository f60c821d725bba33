"""Each breaking change and each violated style rule is reported; compatible changes are not."""

import pathlib
import tempfile
import unittest

from google.protobuf import descriptor_pb2

from proto_check.breaking import breaking_changes
from proto_check.compile import compile_protos
from proto_check.lint import lint

_FILE = "stride/v1/toy_service.proto"
_TOY = """
syntax = "proto3";
package stride.v1;
option csharp_namespace = "Stride.V1";
option go_package = "stride/v1;stridev1";
option java_multiple_files = true;
option java_package = "stride.v1";
option objc_class_prefix = "STR";
option php_namespace = "Stride\\\\V1";
option ruby_package = "Stride::V1";
service ToyService {
  rpc Run(RunRequest) returns (RunResponse);
  rpc Watch(WatchRequest) returns (stream WatchResponse);
}
enum Color {
  COLOR_UNSPECIFIED = 0;
  COLOR_RED = 1;
}
message RunRequest {
  reserved 9;
  reserved "old_name";
  string session = 1;
  int32 count = 2;
  optional double ratio = 3;
  repeated int64 sizes = 4;
  oneof kind {
    string text = 5;
    bytes blob = 6;
  }
  map<string, string> labels = 7;
}
message RunResponse {
  Color color = 1;
}
message WatchRequest {}
message WatchResponse {}
message Unused {}
"""

# (what is changed, old text, new text, part of the line that must be reported)
_BREAKING = [
    ("field removed", "  int32 count = 2;\n", "", "field stride.v1.RunRequest = 2 (count): removed"),
    ("field removed, number reserved", "  int32 count = 2;\n", "  reserved 2;\n", "= 2 (count): removed"),
    ("field renumbered", "int32 count = 2", "int32 count = 12", "= 2 (count): removed"),
    ("field renamed", "int32 count = 2", "int32 number = 2", "name was count, is number"),
    ("field type", "int32 count = 2", "int64 count = 2", "type was int32, is int64"),
    ("message type", "Color color = 1", "int32 color = 1", "type was stride.v1.Color, is int32"),
    ("JSON name", "int32 count = 2", 'int32 count = 2 [json_name = "n"]', "JSON name was count, is n"),
    ("label", "int32 count = 2", "repeated int32 count = 2", "label was optional, is repeated"),
    ("presence gained", "int32 count = 2", "optional int32 count = 2", "explicit presence was False, is True"),
    ("presence lost", "optional double ratio", "double ratio", "explicit presence was True, is False"),
    ("packing", "sizes = 4", "sizes = 4 [packed = false]", "packed was default, is False"),
    (
        "moved into a oneof",
        "int32 count = 2;\n  optional double ratio = 3;\n  repeated int64 sizes = 4;\n  oneof kind {",
        "optional double ratio = 3;\n  repeated int64 sizes = 4;\n  oneof kind { int32 count = 2;",
        "oneof was None, is kind",
    ),
    ("moved out of a oneof", "bytes blob = 6;\n  }", "}\n  bytes blob = 6;", "oneof was kind, is None"),
    ("oneof renamed", "oneof kind", "oneof sort", "oneof was kind, is sort"),
    ("map value type", "map<string, string>", "map<string, bytes>", "type was string, is bytes"),
    ("message removed", "message Unused {}", "", "message stride.v1.Unused: removed"),
    ("enum value removed", "  COLOR_RED = 1;\n", "", "enum value stride.v1.Color = 1 (COLOR_RED): removed"),
    ("enum value renumbered", "COLOR_RED = 1", "COLOR_RED = 2", "= 1 (COLOR_RED): removed"),
    ("enum value renamed", "COLOR_RED", "COLOR_CRIMSON", "name was COLOR_RED, is COLOR_CRIMSON"),
    ("reserved number freed", "  reserved 9;\n", "", "reserved numbers stride.v1.RunRequest 9..10: removed"),
    ("reserved name freed", '  reserved "old_name";\n', "", "reserved name stride.v1.RunRequest old_name: removed"),
    ("service renamed", "service ToyService", "service GameService", "service stride.v1.ToyService: removed"),
    ("rpc removed", "  rpc Run(RunRequest) returns (RunResponse);\n", "", "rpc stride.v1.ToyService.Run: removed"),
    ("rpc renamed", "rpc Run(", "rpc Start(", "rpc stride.v1.ToyService.Run: removed"),
    ("rpc request", "Run(RunRequest)", "Run(WatchRequest)", "request was stride.v1.RunRequest"),
    ("rpc response", "returns (RunResponse)", "returns (WatchResponse)", "response was stride.v1.RunResponse"),
    ("client streaming", "Run(RunRequest)", "Run(stream RunRequest)", "client streaming was False, is True"),
    ("server streaming", "(stream WatchResponse)", "(WatchResponse)", "server streaming was True, is False"),
]

_HARMLESS = [
    ("comment", "enum Color", "// Shades.\nenum Color"),
    ("field added", "message WatchRequest {}", "message WatchRequest { int32 id = 1; }"),
    ("enum value added", "COLOR_RED = 1;", "COLOR_RED = 1; COLOR_BLUE = 2;"),
    ("rpc added", "service ToyService {", "service ToyService { rpc Stop(StopRequest) returns (StopResponse);"),
    ("order", "string session = 1;\n  int32 count = 2;", "int32 count = 2;\n  string session = 1;"),
]
_ADDED = "message StopRequest {} message StopResponse {}"

_LINT = [
    ("zero value", "COLOR_UNSPECIFIED", "COLOR_NONE", "the zero value is not COLOR_UNSPECIFIED"),
    ("value prefix", "COLOR_RED", "RED", "does not start with COLOR_"),
    ("value case", "COLOR_RED", "COLOR_red", "not UPPER_SNAKE_CASE"),
    ("field case", "int32 count", "int32 countAll", "field name is not lower_snake_case"),
    ("oneof case", "oneof kind", "oneof Kind", "oneof name is not lower_snake_case"),
    ("message case", "WatchResponse", "watch_response", "message name is not PascalCase"),
    ("service suffix", "service ToyService", "service Toy", "service name is not PascalCase ending in Service"),
    ("rpc case", "rpc Run(", "rpc run(", "rpc name is not PascalCase"),
    ("request name", "Run(RunRequest)", "Run(WatchRequest)", "is not named RunRequest"),
    ("shared message", "Run(RunRequest)", "Run(WatchRequest)", "is also used by"),
    ("package version", "package stride.v1;", "package stride;", "does not end in a version"),
    ("Go import path", 'option go_package = "stride/v1;stridev1";', "", "go_package is missing"),
    ("Java package", 'option java_package = "stride.v1";', "", "java_package is missing"),
    ("package folder", "package stride.v1;", "package stride.v2;", "does not match its folder"),
]


def _compile(text: str) -> descriptor_pb2.FileDescriptorSet:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, _FILE)
        file.parent.mkdir(parents=True)
        file.write_text(text)
        return compile_protos(pathlib.Path(folder))


def _edited(old: str, new: str) -> str:
    assert old in _TOY, old
    return _TOY.replace(old, new)


class ProtoCheckTest(unittest.TestCase):
    def test_breaking_changes_are_found(self):
        toy = _compile(_TOY)
        for what, old, new, expected in _BREAKING:
            with self.subTest(what):
                problems = breaking_changes(toy, _compile(_edited(old, new)))
                self.assertTrue(any(expected in problem for problem in problems), problems)

    def test_a_type_moved_to_another_file_is_breaking(self):
        moved = _compile(_TOY)
        moved.file[0].name = "stride/v1/other.proto"
        problems = breaking_changes(_compile(_TOY), moved)
        self.assertIn(
            "message stride.v1.RunRequest: file was stride/v1/toy_service.proto, is stride/v1/other.proto", problems
        )

    def test_harmless_changes_are_not_reported(self):
        toy = _compile(_TOY)
        for what, old, new in _HARMLESS:
            with self.subTest(what):
                self.assertEqual(breaking_changes(toy, _compile(_edited(old, new) + _ADDED)), [])

    def test_lint_finds_each_rule(self):
        self.assertEqual(lint(_compile(_TOY)), [])
        for what, old, new, expected in _LINT:
            with self.subTest(what):
                problems = lint(_compile(_edited(old, new)))
                self.assertTrue(any(expected in problem for problem in problems), problems)

    def test_invalid_proto_raises_value_error(self):
        with self.assertRaises(ValueError):
            _compile("not a proto")


if __name__ == "__main__":
    unittest.main()
