"""ci/check-proto: see the package's own words."""

import argparse
import pathlib
import sys

from google.protobuf import descriptor_pb2

from proto_check.breaking import breaking_changes
from proto_check.compile import compile_for_client, compile_protos
from proto_check.lint import lint

_ROOT = pathlib.Path(__file__).resolve().parents[2] / "proto"
# The Python client makes its messages from this copy, so that its folder builds wherever it lies.
_CLIENT = "client/python/stride/v1/contract.binpb"


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/check-proto", description=__doc__)
    parser.add_argument("--update", action="store_true", help="accept the contract as it is: rewrite the baseline")
    parser.add_argument("--root", type=pathlib.Path, default=_ROOT, help="folder of stride/v1 and baseline")
    arguments = parser.parse_args()
    baseline = arguments.root / "baseline" / "stride.v1.binpb"

    try:
        new = compile_protos(arguments.root)
    except ValueError as error:
        print(f"check-proto: {error}", file=sys.stderr)
        return 1
    problems = [f"lint: {problem}" for problem in lint(new)]
    client = arguments.root.parent / _CLIENT
    for_client = compile_for_client(arguments.root) if client.parent.is_dir() else None
    if not arguments.update:
        if not baseline.exists():
            print(f"check-proto: no baseline at {baseline}; ci/check-proto --update makes it", file=sys.stderr)
            return 1
        old = descriptor_pb2.FileDescriptorSet.FromString(baseline.read_bytes())
        problems += [f"breaking: {problem}" for problem in breaking_changes(old, new)]
        if for_client is not None and (
            not client.exists() or descriptor_pb2.FileDescriptorSet.FromString(client.read_bytes()) != for_client
        ):
            problems.append(f"{_CLIENT} is not made from these files; ci/check-proto --update makes it")
    for problem in problems:
        print(f"check-proto: {problem}", file=sys.stderr)
    if problems:
        return 1
    if arguments.update:
        baseline.parent.mkdir(exist_ok=True)
        baseline.write_bytes(new.SerializeToString(deterministic=True))
        print(f"check-proto: {baseline} rewritten")
        if for_client is not None:
            client.write_bytes(for_client.SerializeToString(deterministic=True))
            print(f"check-proto: {client} rewritten")
    else:
        print(f"check-proto: {len(new.file)} files break no client of the baseline")
    return 0


if __name__ == "__main__":
    sys.exit(main())
