"""cuda_operations_bench runs, checks its own results and reports every row; without a GPU it reports that.
Where it was built with CUB, every other row has a plan that compiles, with or without a GPU."""

import pathlib
import re
import subprocess
import sys

import program_case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench.peers.workloads import ROWS  # noqa: E402

_PRODUCTS = [
    "matmul_1024x2048x512_float32",
    "matmul_1024x2048x512_float64",
    "matmul_1000_float64",
    "matmul_3000_by_its_transpose_float32",
    *(f"matmul_{side}_{type}" for side in (512, 1024) for type in ("float32", "float64")),
]
# Compared with the driver's copy, which is their limit.
_BOUND_BY_MEMORY = ["add", "multiply_add", "choose", "trigonometric", "matvec"]
# Compared with the toolkit's libraries, by key of bench/peers/rows.
_ROUTINES = [
    "complex_product", "pair_differences", "exp_float64", "row_broadcast",
    "sum", "max_int32", "argmax", "argmax_axis1", "sum_axis1", "sum_axis0", "sum_of_squares",
    "sum_leading", "var_axis0", "std",
    "sort", "sort_int64", "sort_float64", "sort_short", "argsort", "argsort_int64", "sort_rows", "unique", "median",
    "top_k", "partition", "searchsorted", "digitize",
    "cumsum", "cumsum_int64", "cumsum_axis1", "cumsum_axis0", "mask", "nonzero",
    "take", "scatter", "add_at_many", "add_at_few", "bincount", "group_sum", "histogram",
    "roll", "repeat", "tril", "stack", "concatenate", "transpose", "add_transpose",
    "fft_1e6", "fft", "fft2", "fftn", "rfft_rows",
    "normal", "uniform", "integers", "permutation",
    "vecmat", "dot", "matmul_batch", "product_int8_256", "cholesky_512", "cholesky_batch", "solve_512", "solve_batch",
]  # fmt: skip
# Rows of large matrices, which --quick omits.
_LARGE = ["product_int8_1024", "product_int8_4096", "cholesky_4096", "solve_2048"]
_NO_CUB = "rows next to CUB: built without nvcc"


class CudaOperationsBenchTest(program_case.ProgramCase):
    def run_quickly(self, *arguments):
        printed, content = self.run_program("--quick", "--rounds=1", *arguments)
        if not content["rows"]:
            print(printed)
            self.assertRegex(printed, "no device of kind cuda: .+")
            self.assertRegex(content["missing"][0], "^operations on a GPU: no device of kind cuda: .+")
            self.assertEqual(content["devices"], {})
        return content

    def test_every_row_is_reported(self):
        content = self.run_quickly()
        if not content["rows"]:
            return
        rows = {row["id"]: row for row in content["rows"]}
        self.assertEqual(list(content["devices"]), ["cuda:0"])
        routines = [] if _NO_CUB in content["missing"] else _ROUTINES
        self.assertEqual(set(rows), {f"device/{name}/cuda:0" for name in _PRODUCTS + _BOUND_BY_MEMORY + routines})
        self.assertEqual([one for one in content["missing"] if one.startswith("WRONG")], [])
        for id, row in rows.items():
            with self.subTest(id):
                self.assertGreater(row["ours"]["min_s"], 0)
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])
                self.assertEqual(row.get("limit_s", 0) > 0, id.split("/")[1] not in _PRODUCTS)

    def test_every_row_has_a_plan_that_compiles(self):
        planned = self.plan("--quick")
        if planned is None:
            return
        self.assertEqual(planned, _ROUTINES)
        self.assertEqual(self.plan("--only=" + ",".join(_LARGE)), _LARGE)
        self.assertLessEqual({*planned, *_LARGE}, {row.key for row in ROWS})

    def plan(self, *arguments):
        run = subprocess.run([self.program, "--plan", *arguments], capture_output=True, text=True, timeout=280)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return None if _NO_CUB in run.stdout else re.findall(r"^(\w+): [1-9]\d* tasks", run.stdout, re.M)

    def test_only_some(self):
        ids = [row["id"] for row in self.run_quickly("--only=/matmul_1000_")["rows"]]
        self.assertIn(ids, ([], ["device/matmul_1000_float64/cuda:0"]))

    def test_wrong_arguments_are_refused(self):
        self.check_refuses(["--rounds=0"], ["--quick=1"], ["--unknown=1"], ["word"])


if __name__ == "__main__":
    program_case.main()
