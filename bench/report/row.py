"""A row of the table: one measurement of ours and its baseline. Every benchmark writes its rows as JSON:

    {"devices": {"cpu:0": "AMD EPYC"}, "missing": ["CuPy: not installed"], "rows": [
      {"id": "run/unix/cpu:0", "what": "Run add, 1000 float32", "ours": TIMES, "baseline_name": "gRPC echo",
       "baseline": TIMES, "bytes": 12000, "limit_s": 0.001, "limit_name": "a plain copy"}]}

where TIMES is {"median_s", "p99_s", "min_s", "count"} and all but id, what and ours may be missing. Times are
seconds, so that a ratio above 1 says that ours is slower; "p99_s" of fewer than a hundred turns is the
longest one."""

from __future__ import annotations

import dataclasses
import json
import statistics


@dataclasses.dataclass(frozen=True)
class Times:
    median_s: float
    p99_s: float
    min_s: float
    count: int

    @classmethod
    def of(cls, seconds):
        ordered = sorted(seconds)
        return cls(
            statistics.median(ordered),
            ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)],
            ordered[0],
            len(ordered),
        )


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    what: str
    ours: Times
    baseline_name: str = ""
    baseline: Times | None = None
    bytes: int = 0
    # The machine's best, and by which measure.
    limit_s: float = 0
    limit_name: str = ""
    # The first turn in a new process, with its compilation.
    first_s: float = 0
    baseline_first_s: float = 0
    # Least time of our call of an operation on a few elements.
    call_s: float = 0

    @property
    def ratio(self):
        return self.ours.median_s / self.baseline.median_s if self.baseline and self.baseline.median_s > 0 else None

    @property
    def least_ratio(self):
        return self.ours.min_s / self.baseline.min_s if self.baseline and self.baseline.min_s > 0 else None

    @property
    def loop_ratio(self):
        """Ratio of the least times, ours without the call."""
        return max(self.ours.min_s - self.call_s, 0) / self.baseline.min_s if self.least_ratio is not None else None

    def as_json(self):
        fields = {name: value for name, value in dataclasses.asdict(self).items() if value}
        return fields | ({"ratio": float(f"{self.ratio:.4g}")} if self.ratio is not None else {})

    @classmethod
    def from_json(cls, fields):
        known = {field.name for field in dataclasses.fields(cls)}
        values = {name: value for name, value in fields.items() if name in known}
        for name in ("ours", "baseline"):
            if name in values:
                values[name] = Times(**values[name])
        return cls(**values)


@dataclasses.dataclass
class Result:
    """The results of one benchmark, or of several together."""

    rows: list = dataclasses.field(default_factory=list)
    devices: dict = dataclasses.field(default_factory=dict)
    missing: list = dataclasses.field(default_factory=list)

    def add(self, other):
        """Raises ValueError for an id that is there already: two benchmarks would overwrite each other's row."""
        there = {row.id for row in self.rows}
        if twice := [row.id for row in other.rows if row.id in there]:
            raise ValueError(f"rows of two benchmarks: {', '.join(twice)}")
        self.rows += other.rows
        self.devices |= other.devices
        self.missing += [one for one in other.missing if one not in self.missing]

    def model(self):
        """Model of the first GPU; empty if there is none."""
        return next((name for label, name in self.devices.items() if label.startswith("cuda")), "")

    def write(self, path):
        with open(path, "w") as file:
            json.dump(
                {"devices": self.devices, "missing": self.missing, "rows": [row.as_json() for row in self.rows]},
                file,
                indent=1,
            )

    @classmethod
    def read(cls, path):
        """Reads our format or Google Benchmark's, whose rows have no baseline. Raises ValueError or KeyError
        for other content."""
        with open(path) as file:
            content = json.load(file)
        if "benchmarks" in content:
            return cls(_google_rows(content["benchmarks"]))
        return cls(
            [Row.from_json(one) for one in content["rows"]], content.get("devices", {}), content.get("missing", [])
        )


_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def _google_rows(benchmarks):
    """One row for each benchmark of several repetitions, aggregates left out."""
    times = {}
    for one in benchmarks:
        if one.get("run_type") == "iteration":
            times.setdefault(one["run_name"], []).append(one["real_time"] * _SECONDS[one["time_unit"]])
    return [
        Row(f"worker/{name.removesuffix('/real_time')}", name.removesuffix("/real_time"), Times.of(turns))
        for name, turns in times.items()
    ]
