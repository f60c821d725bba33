"""cpu_kernels_bench runs, checks its own results and reports every row, with sane numbers."""

import os

import program_case

_NAMES = (
    "add expression elu saxpy_grid_stride block_reduce block_reduce_in_order shuffle_reduce grid_reduce "
    "histogram_shared "
    "histogram_global tiled_product tiled_product_by_rows naive_product local_array window byte_table early_exit "
    "color_wheel matmul_float32 matmul_float64"
).split()


class CpuKernelsBenchTest(program_case.ProgramCase):
    def test_every_row_is_reported(self):
        _, content = self.run_program("--elements=20000", "--matrix=64", "--rounds=2")
        rows = {row["id"]: row for row in content["rows"]}
        threads = ["one"] + (["all"] if os.cpu_count() > 1 else [])
        self.assertEqual(set(rows), {f"{name}/{kind}/cpu:0" for name in _NAMES for kind in threads})
        for id, row in rows.items():
            with self.subTest(id):
                for times in (row["ours"], row["baseline"]):
                    self.assertGreater(times["min_s"], 0)
                    self.assertGreaterEqual(times["median_s"], times["min_s"])
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])

    def test_wrong_arguments_are_refused(self):
        self.check_refuses(["--rounds=0"], ["--matrix=17"], ["--unknown=1"], ["word"])


if __name__ == "__main__":
    program_case.main()
