"""ci/gpu: see the script's head."""

import argparse
import sys

from gpu_check.pack import build
from gpu_check.paths import PACK
from gpu_check.run import PARTS, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/gpu")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="build and pack into dist/gpu")
    runner = verbs.add_parser("run", help="run what was packed, on a machine with a GPU")
    runner.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} or all, the default")
    runner.add_argument("--limit", type=float, default=1140, metavar="SECONDS",
                        help="parts that have not ended by then have failed (default: 1140)")  # fmt: skip
    runner.add_argument("--only", default="", metavar="REGEX", help="only tests with such a name (default: all)")
    arguments = parser.parse_args()
    if arguments.verb == "build":
        return build()
    if unknown := set(arguments.parts) - {*PARTS, "all"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if not PACK.exists():
        print(f"gpu: no {PACK}; make it with ci/gpu build", file=sys.stderr)
        return 1
    parts = set(arguments.parts or ["all"])
    return run(set(PARTS) if "all" in parts else parts, arguments.limit, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
