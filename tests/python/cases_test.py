"""The op cases, through NumPy's functions. The namespace's own follow the array API where it differs
(`floor_divide` of infinities)."""

import numpy as np

import client_case
import op_cases
import stride as st


class CasesTest(client_case.ClientCase):
    @staticmethod
    def function(op):
        return getattr(st if op in ("where", "clip") else np, op)

    def check(self, name, least):
        # All are recorded before the first is read: one flush, as a program would.
        cases = list(op_cases.read(name))
        self.assertGreater(len(cases), least)
        results = [self.function(case.op)(*(st.asarray(one) for one in case.inputs)) for case in cases]
        for case, result in zip(cases, results):
            with self.subTest(op=case.op, types=[str(one.dtype) for one in case.inputs]):
                actual = np.asarray(result)
                self.assertEqual((actual.dtype, actual.shape), (case.expected.dtype, case.expected.shape))
                wrong = case.differences(actual)
                if wrong.size:
                    at = wrong[0]
                    self.fail(
                        f"{case.op}({', '.join(repr(one[at]) for one in case.inputs)}) is {actual[at]!r}, not "
                        f"{case.expected[at]!r}; "
                        f"{wrong.size} of {actual.size} are wrong"
                    )

    def test_every_function_and_type(self):
        self.check("ufunc.case", 700)

    def test_accuracy_over_the_whole_range(self):
        self.check("accuracy.case", 80)


if __name__ == "__main__":
    client_case.main()
