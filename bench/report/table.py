"""Rows as text."""

from bench.report.targets import target_of

_HEADINGS = ("work", "ours", "p99", "baseline", "p99", "ratio", "limit", "target", "met?")


def duration(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _cells(row, judge):
    target = target_of(row) if judge else None
    met = target.met(row) if target else None
    return (
        row.what.strip(),
        duration(row.ours.median_s),
        duration(row.ours.p99_s),
        f"{row.baseline_name}: {duration(row.baseline.median_s)}" if row.baseline else "",
        duration(row.baseline.p99_s) if row.baseline else "",
        f"{row.ratio:.2f}" if row.ratio is not None else "",
        duration(row.limit_s) if row.limit_s else "",
        target.words() if target else "",
        "" if met is None else "yes" if met else "NO",
    )


def table(rows, judge=True):
    """A line of headings, then a line per row. Text is aligned left, numbers right. `judge`: also compares
    with the targets."""
    lines = [_HEADINGS, *(_cells(row, judge) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    left = {0, 3, 7}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def summary(rows, judge=True):
    if not judge:
        return f"{len(rows)} rows; small sizes and few turns (--quick), so that they are held against no target"
    verdicts = [target.met(row) for row in rows if (target := target_of(row))]
    judged = [verdict for verdict in verdicts if verdict is not None]
    return f"{len(rows)} rows, {len(judged)} with a target, {sum(judged)} of them met"
