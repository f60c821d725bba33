"""ci/bench BUILD_DIR [--only PART,...] [--quick] [--limit SECONDS] [--results FOLDER] [--update-reference]

Runs the benchmarks and prints one table of all their rows. bench.json, next to the table's file, has the rows, the
machine, the devices and the missing parts. A row that lost against the GPU model's reference fails the run. A part
that fails keeps the rows that it wrote."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from bench.report import machine, reference
from bench.report.parts import PARTS
from bench.report.row import Result
from bench.report.table import summary, table

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments(words):
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="ci/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=pathlib.Path, help="a build's folder, such as build/release")
    parser.add_argument("--only", default="", help=f"some parts, with commas between: {', '.join(names)}")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few turns: whether it runs, not how fast it is"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=600,
        help="seconds after which no further part is started, and the running part is ended",
    )
    parser.add_argument("--results", type=pathlib.Path, help="a folder for what is written (BUILD_DIR/bench)")
    parser.add_argument(
        "--update-reference", action="store_true", help="write the rows of `peers` and `device` as the reference"
    )
    options = parser.parse_args(words)
    if options.update_reference and options.quick:
        parser.error("--quick measures small sizes, which are no reference")
    wanted = [name for name in options.only.split(",") if name]
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(names)}")
    if not (options.build / "bin" / "strided").exists():
        parser.error(f"no strided in {options.build / 'bin'}: build it first")
    options.parts = [part for part in PARTS if not wanted or part.name in wanted]
    options.results = options.results or options.build / "bench"
    return options


def run(part, options, environment, seconds):
    """Its rows, and why it failed: both where it wrote rows and failed later. Its output goes to a file of its name."""
    bin, rows, log = (
        (options.build / "bin").resolve(),
        options.results / f"{part.name}.json",
        options.results / f"{part.name}.txt",
    )
    rows.unlink(missing_ok=True)
    command = part.command(bin, rows, options.quick)
    if not os.path.exists(command[0]):
        return None, f"{pathlib.Path(command[0]).name} is not built"
    with open(log, "w") as output:
        try:
            ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, timeout=seconds)
            why = ""
        except subprocess.TimeoutExpired:
            why = f"not done within {seconds:.0f} s; see {log}"
    if not why and ended.returncode != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        why = f"exit {ended.returncode}: {' '.join(last)}; see {log}"
    try:
        return Result.read(rows), why
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, why or f"no rows to be read: {error!r}"


def main(words=None):
    options = arguments(words)
    options.results.mkdir(parents=True, exist_ok=True)
    daemon = (options.build / "bin" / "strided").resolve()
    paths = [str(ROOT), str((options.build / "python").resolve()), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "STRIDE_DAEMON": str(daemon), "PYTHONPATH": os.pathsep.join(paths).rstrip(os.pathsep)}
    about = machine.describe(ROOT, daemon)
    print(machine.line(about), flush=True)
    whole, failed, end = Result(), {}, time.monotonic() + options.limit
    for part in options.parts:
        begin = time.monotonic()
        if begin >= end:
            failed[part.name] = f"not begun: {options.limit:.0f} s are over"
            continue
        print(f"{part.name} ...", end=" ", flush=True)
        result, why = run(part, options, environment, min(part.limit_s, end - begin))
        if result is None and part.optional and why.endswith("is not built"):
            whole.missing.append(f"{part.name}: {why}")
        elif why:
            failed[part.name] = why
        if result is not None:
            whole.add(result)
        print(f"{time.monotonic() - begin:.0f} s" + (f": {why}" if why else ""), flush=True)
    model = whole.model()
    if options.update_reference:
        if failed or not model or not reference.measured(whole.rows):
            failed["reference"] = "not written: a part failed, or no row of `peers` or `device` was measured on a GPU"
        else:
            reference.write(whole.rows, model, about)
    elif model and not options.quick and (lines := reference.lost(whole.rows, model)):
        failed["reference"] = (
            f"rows that lost more than 10 % against {reference.path_of(model).name}:\n  " + "\n  ".join(lines)
        )
    text = [table(whole.rows, not options.quick), "", summary(whole.rows, not options.quick)]
    text += [f"missing: {one}" for one in whole.missing]
    text += [f"FAILED: {name}: {why}" for name, why in failed.items()]
    print("", *text, sep="\n")
    content = {
        "machine": about,
        "quick": options.quick,
        "devices": whole.devices,
        "missing": whole.missing,
        "failed": failed,
    }
    with open(options.results / "bench.json", "w") as file:
        json.dump(content | {"rows": [row.as_json() for row in whole.rows]}, file, indent=1)
    (options.results / "bench.txt").write_text("\n".join([machine.line(about), *text]) + "\n")
    print(f"written: {options.results / 'bench.json'} and bench.txt")
    return 1 if failed or not whole.rows else 0


if __name__ == "__main__":
    sys.exit(main())
