"""cpucuda/ is a library of its own: it has one public header, and sees two headers of the server."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[3]
PUBLIC = {"cpucuda/cpucuda.h"}
SHARED = {"server/base/printed_text.h", "server/base/unknown_entry.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def includes(*folders):
    """(file, header) for each #include of the C++ files in these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".cu") and path.is_file():
                for header in INCLUDE.findall(path.read_text()):
                    yield path.relative_to(ROOT), header


class IncludesTest(unittest.TestCase):
    def test_other_code_includes_the_public_header_alone(self):
        own = pathlib.PurePath("tests/unit/cpucuda")
        used = [
            (path, header)
            for path, header in includes("server", "client", "bench", "tests")
            if header.startswith("cpucuda/") and own not in path.parents
        ]
        self.assertTrue(used)
        self.assertEqual([one for one in used if one[1] not in PUBLIC], [])

    def test_the_library_includes_two_headers_of_the_server(self):
        used = {header for _, header in includes("cpucuda") if not header.startswith(("cpucuda/", "absl/", "llvm/"))}
        self.assertEqual({one for one in used if one.startswith(("server/", "client/", "stride/"))}, SHARED)

    def test_the_runtime_includes_no_compiler(self):
        foreign = ("cpucuda/compiler", "llvm/", "clang/")
        used = [one for one in includes("cpucuda/runtime") if one[1].startswith(foreign)]
        self.assertEqual(used, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
