"""Compiles the kernels of a collection of CUDA programs on a device kind and counts the compiler's results.

cuda_kernels.py STRIDED FOLDER [--device-kind=cpu] [--json=FILE] [--details=FOLDER] [PART_OF_A_PATH ...]

Each .cu file with kernels counts once. Templates are compiled as the program launches them, or with guessed
arguments."""

import argparse
import collections
import json
import os
import re
import sys

import cuda_source

import stride as st
from stride._daemon import PrivateDaemon


def files_of(folder, parts):
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(top, name)
            if name.endswith(".cu") and (not parts or any(one in path for one in parts)):
                yield path


def included_files(files):
    """Sources that are parts of others: they are compiled where they are included."""
    found = set()
    for path in files:
        for top in {os.path.dirname(path), os.path.dirname(os.path.dirname(path))}:
            for name in os.listdir(top):
                if not name.endswith((".cu", ".cuh", ".h", ".hpp", ".c", ".cpp")):
                    continue
                with open(os.path.join(top, name), encoding="utf-8", errors="replace") as file:
                    for one in re.findall(r'^\s*#\s*include\s*"([^"]+\.cu)"', file.read(), re.MULTILINE):
                        found.add(os.path.realpath(os.path.join(top, one)))
    return found


def cause_of(error):
    """The missing feature, else the compiler's first error."""
    text = str(error)
    match = re.search(r"device has no ([^\n]*)", text) or re.search(r"error: ([^\n]*)", text)
    return (match[1] if match else text.split("\n", 1)[0])[:140]


def outcome_of(path, folder, kind):
    source = cuda_source.DeviceSource(path, program_roots(path, folder))
    if not source.kernels:
        return None
    if not source.entries:
        return "only templates", ""
    sure = [one for one in source.entries if one not in source.guessed]
    try:
        compile_kernels(source, source.entries, kind)
    except st.StrideError as error:
        whole = source.text + "\n/*\n" + ", ".join(source.entries) + "\n" + str(error) + "\n*/\n"
        if not source.guessed:
            return cause_of(error), whole
        if not sure:
            return "only guessed templates: " + cause_of(error), whole
        try:
            compile_kernels(source, sure, kind)
        except st.StrideError as other:
            return cause_of(other), whole
    return "compiled", ""


def compile_kernels(source, entries, kind):
    st.RawModule(source.text, options=source.options, entries=entries, device_kind=kind).compile().delete()


def program_roots(path, folder):
    """Where a program's headers may be: the folders around it, up to the collection's, and those next to them."""
    roots = [os.path.dirname(path)]
    while roots[-1] != folder:
        roots.append(os.path.dirname(roots[-1]))
    if len(roots) > 4:
        roots = roots[:-1]
    for one in list(roots):
        roots += [os.path.join(one, name) for name in sorted(os.listdir(one)) if os.path.isdir(os.path.join(one, name))]
    return roots


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("strided")
    parser.add_argument("folder")
    parser.add_argument("--device-kind", default="cpu")
    parser.add_argument("--json")
    parser.add_argument("--details")
    parser.add_argument("parts", nargs="*")
    arguments = parser.parse_intermixed_args()
    outcomes = {}
    arguments.folder = os.path.normpath(arguments.folder)
    options = ["--cpu-devices=1x2"] + (["--no-cuda"] if arguments.device_kind == "cpu" else [])
    daemon = PrivateDaemon(arguments.strided, options)
    try:
        with st.connect(daemon.address):
            files = list(files_of(arguments.folder, arguments.parts))
            parts = included_files(files)
            for path in files:
                if os.path.realpath(path) in parts:
                    continue
                name = os.path.relpath(path, arguments.folder)
                found = outcome_of(path, arguments.folder, arguments.device_kind)
                if found is None:
                    continue
                outcomes[name] = found[0]
                if found[1] and arguments.details:
                    with open(os.path.join(arguments.details, name.replace("/", "__")), "w") as file:
                        file.write(found[1])
    finally:
        daemon.stop()
    counts = collections.Counter(outcomes.values())
    for cause, count in counts.most_common():
        print(f"{count:5d}  {cause}")
    print(f"{counts['compiled']} of {len(outcomes)} files with kernels compile")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(outcomes, file, indent=1, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
