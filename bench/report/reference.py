"""The committed times of a GPU model, `bench/reference/MODEL.json`, and the rows that lost against them.

A row is lost where both its own time and its ratio to the fastest peer grew by more than 10 %. One alone may be the
machine or the peer.

    python3 -m bench.report.reference FILE... --commit COMMIT     # of rows that were measured elsewhere

writes the reference of the model that the files name, from JSON files of peers.py and cuda_operations_bench."""

import argparse
import json
import pathlib
import re

from bench.report import machine
from bench.report.row import Result

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "reference"
# The least growth of a lost row.
LOST = 1.1


def path_of(model, folder=FOLDER):
    return folder / (re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-") + ".json")


def measured(rows):
    """`ours_s`, and `ratio` to the fastest peer where there is one. Keys are a `peer` row's id without its peer and
    device, and `device/NAME` of a row without a daemon."""
    found = {}
    for row in rows:
        kind, *parts = row.id.split("/")
        if kind == "peer" and len(parts) == 3:
            key = parts[0]
        elif kind == "device" and len(parts) == 2:
            key = f"device/{parts[0]}"
        else:
            continue
        one = found.setdefault(key, {"ours_s": row.ours.median_s})
        if row.ratio is not None:
            one["ratio"] = max(one.get("ratio", 0), row.ratio)
    return found


def lost(rows, model, folder=FOLDER):
    """One line for each lost row; nothing where the model has no reference."""
    try:
        reference = json.loads(path_of(model, folder).read_text())["rows"]
    except FileNotFoundError:
        return []
    lines = []
    for key, now in measured(rows).items():
        before = reference.get(key)
        if before is None or now["ours_s"] <= LOST * before["ours_s"]:
            continue
        if "ratio" in now and "ratio" in before and now["ratio"] <= LOST * before["ratio"]:
            continue
        ratios = f", ratio {before['ratio']:.2f} to {now['ratio']:.2f}" if "ratio" in now and "ratio" in before else ""
        lines.append(f"{key}: {before['ours_s'] * 1e3:.3f} ms to {now['ours_s'] * 1e3:.3f} ms{ratios}")
    return lines


def write(rows, model, about, folder=FOLDER):
    """Replaces the model's reference. `about`: machine.describe."""
    folder.mkdir(exist_ok=True)
    rounded = {
        key: {name: float(f"{value:.4g}") for name, value in one.items()} for key, one in sorted(measured(rows).items())
    }
    kept = {name: about[name] for name in ("date", "commit", "version") if name in about}
    path_of(model, folder).write_text(json.dumps({"model": model, **kept, "rows": rounded}, indent=1) + "\n")


def main(words=None):
    parser = argparse.ArgumentParser(prog="bench.report.reference", description="Writes a GPU model's reference.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON of peers.py and of cuda_operations_bench")
    parser.add_argument("--commit", required=True, help="the commit that was measured")
    options = parser.parse_args(words)
    whole = Result()
    for file in options.files:
        whole.add(Result.read(file))
    model = whole.model()
    if not model or not measured(whole.rows):
        parser.error("the files have no rows of a GPU")
    date = machine.date()
    write(whole.rows, model, {"date": date, "commit": options.commit})
    print(f"written: {path_of(model)}")


if __name__ == "__main__":
    main()
