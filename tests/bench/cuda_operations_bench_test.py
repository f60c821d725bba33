"""cuda_operations_bench runs, checks its own results and reports every row, with sane numbers; without a GPU it says so."""

import program_case

_NAMES = [
    "matmul_1024x2048x512_float32",
    "matmul_1024x2048x512_float64",
    "matmul_1000_float64",
    "matmul_3000_by_its_transpose_float32",
    *(f"matmul_{side}_{type}" for side in (512, 1024) for type in ("float32", "float64")),
]
# Beside the driver's copy, which is their limit.
_BOUND_BY_MEMORY = [
    "add", "multiply_add", "choose", "trigonometric", "sum", "matvec", "sort", "argsort", "cumsum", "compress",
    "group_sum",
]


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
        self.assertEqual(set(rows), {f"device/{name}/cuda:0" for name in _NAMES + _BOUND_BY_MEMORY})
        for id, row in rows.items():
            with self.subTest(id):
                self.assertGreater(row["ours"]["min_s"], 0)
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])
                self.assertEqual(row.get("limit_s", 0) > 0, id.split("/")[1] in _BOUND_BY_MEMORY)

    def test_only_some(self):
        ids = [row["id"] for row in self.run_quickly("--only=/matmul_1000_")["rows"]]
        self.assertIn(ids, ([], ["device/matmul_1000_float64/cuda:0"]))

    def test_wrong_arguments_are_refused(self):
        self.check_refuses(["--rounds=0"], ["--quick=1"], ["--unknown=1"], ["word"])


if __name__ == "__main__":
    program_case.main()
