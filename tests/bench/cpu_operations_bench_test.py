"""cpu_operations_bench runs, checks its own results and reports every row, with sane numbers."""

import os

import program_case

_NAMES = [
    *(
        f"{function}{layout}_{type}"
        for type in ("float32", "float64", "int32")
        for function in ("sum", "max", "argmax")
        for layout in ("", "_rows", "_columns")
    ),
    *(f"sum_short_rows_{type}" for type in ("float32", "float64", "int32")),
    *(f"{product}_{type}" for type in ("float32", "float64") for product in ("matvec", "vecmat", "vecdot")),
    *(f"matmul_{side}_{type}" for side in (64, 128, 256, 512) for type in ("float32", "float64")),
]


class CpuOperationsBenchTest(program_case.ProgramCase):
    def test_every_row_is_reported(self):
        _, content = self.run_program("--side=208", "--rounds=1")
        rows = {row["id"]: row for row in content["rows"]}
        threads = ["one"] + (["all"] if os.cpu_count() > 1 else [])
        self.assertEqual(set(rows), {f"operation/{name}/{kind}/cpu:0" for name in _NAMES for kind in threads})
        for id, row in rows.items():
            with self.subTest(id):
                self.assertGreater(row["ours"]["min_s"], 0)
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])

    def test_wrong_arguments_are_refused(self):
        self.check_refuses(["--rounds=0"], ["--side=0"], ["--unknown=1"], ["word"])


if __name__ == "__main__":
    program_case.main()
