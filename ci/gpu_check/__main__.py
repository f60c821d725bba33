"""ci/gpu: see the script's head."""

import argparse
import sys

from gpu_check.pack import build
from gpu_check.paths import PACK
from gpu_check.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/gpu")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="build and pack into dist/gpu")
    runner = verbs.add_parser("run", help="run what was packed, on a machine with a GPU")
    runner.add_argument("part", nargs="?", default="all", choices=["tests", "sanitize", "bench", "demo", "all"])
    runner.add_argument("--recreate-paths", action="store_true", help="link the build machine's paths to this one's")
    arguments = parser.parse_args()
    if arguments.verb == "build":
        return build()
    if not PACK.exists():
        print(f"gpu: no {PACK}; make it with ci/gpu build", file=sys.stderr)
        return 1
    return run(arguments.part, arguments.recreate_paths)


if __name__ == "__main__":
    sys.exit(main())
