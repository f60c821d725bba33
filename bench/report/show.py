"""python3 -m bench.report.show FILE... [--by-ratio]

Prints the rows of benchmarks' JSON files, one a line: ours, the baseline and the machine's limit in milliseconds, and
the ratio of ours to the baseline's. Needs the standard library alone."""

import argparse

from bench.report.row import Result


def _milliseconds(seconds):
    return f"{seconds * 1e3:.4f}" if seconds else ""


def lines(rows):
    """Cells of each row, below those of the headings."""
    yield "row", "ours ms", "baseline ms", "ratio", "limit ms", "baseline"
    for row in rows:
        yield (
            row.id,
            _milliseconds(row.ours.median_s),
            _milliseconds(row.baseline.median_s) if row.baseline else "",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            _milliseconds(row.limit_s),
            row.baseline_name if row.baseline else "",
        )


def text(result, by_ratio=False):
    rows = sorted(result.rows, key=lambda row: -(row.ratio or 0)) if by_ratio else result.rows
    table = list(lines(rows))
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    shown = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:5], widths[1:])), line[5]]
        ).rstrip()
        for line in table
    ]
    return "\n".join(shown + [f"missing: {one}" for one in result.missing])


def main(words=None):
    parser = argparse.ArgumentParser(prog="bench.report.show", description=__doc__.split("\n\n")[1])
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON of a benchmark (--json, --benchmark_out)")
    parser.add_argument("--by-ratio", action="store_true", help="the rows that lose most come first")
    options = parser.parse_args(words)
    whole = Result()
    for file in options.files:
        whole.add(Result.read(file))
    print(text(whole, options.by_ratio))


if __name__ == "__main__":
    main()
