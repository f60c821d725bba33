"""The committed times of a GPU model, `bench/reference/MODEL.json`, and the rows that lost against them.

A row is lost where both its own time and its ratio to the fastest peer grew by more than 10 %. One alone may be the
machine or the peer."""

import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "reference"
# The least growth of a lost row.
LOST = 1.1


def path_of(model, folder=FOLDER):
    return folder / (re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-") + ".json")


def measured(rows):
    """By key of a `peer` row without its peer and device: `ours_s`, and `ratio` to the fastest peer where there is one."""
    found = {}
    for row in rows:
        kind, *parts = row.id.split("/")
        if kind != "peer" or len(parts) != 3:
            continue
        one = found.setdefault(parts[0], {"ours_s": row.ours.median_s})
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
