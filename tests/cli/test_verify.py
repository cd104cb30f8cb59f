"""gatefold verify: the numerics table."""

from support import ToolTest


class Verify(ToolTest):
    def comparisons(self, *arguments):
        rows = self.table("verify", "--device", "cpu", *arguments)["rows"]
        return {(row["size"], row["compared"], row["against"]): row for row in rows}

    def test_fused_is_closer_to_the_truth(self):
        rows = self.comparisons("--sizes", "33,96", "--iterations", 3)
        self.assertEqual(len(rows), 6)
        for size in (33, 96):
            fused, unfused = rows[size, "fused", "fp64"], rows[size, "unfused", "fp64"]
            self.assertEqual(fused["violations"], 0)
            self.assertLessEqual(fused["max_bound_ratio"], 1)
            self.assertLess(fused["relative_mean"], 1.9e-3)
            self.assertLess(fused["relative_mean"], 0.65 * unfused["relative_mean"])
            apart = rows[size, "fused", "unfused"]
            self.assertLess(apart["relative_mean"], fused["relative_mean"] + unfused["relative_mean"])
            self.assertGreater(apart["max_abs"], apart["mean_abs"])
            self.assertGreater(apart["relative_std"], 0)

    def test_large_sizes_are_sampled(self):
        # 1025 is the first: a quarter of it is checked, with the same outcome.
        rows = self.comparisons("--sizes", "1025", "--iterations", 1, "--layout", "interleaved_up_gate:1")
        fused = rows[1025, "fused", "fp64"]
        self.assertEqual(fused["violations"], 0)
        self.assertGreater(fused["relative_mean"], 1e-3)
        self.assertLess(fused["relative_mean"], 1.9e-3)

    def test_biases(self):
        for layout in ("separate", "up_gate", "interleaved_gate_up:1"):
            rows = self.comparisons("--sizes", "96", "--iterations", 2, "--bias", "--layout", layout)
            fused, unfused = rows[96, "fused", "fp64"], rows[96, "unfused", "fp64"]
            self.assertEqual(fused["violations"], 0)
            self.assertLess(fused["relative_mean"], 1.9e-3)
            self.assertLess(fused["relative_mean"], 0.65 * unfused["relative_mean"])
        # Beyond 1024 rows and columns are sampled, and with them the biases.
        rows = self.comparisons("--sizes", "1025", "--iterations", 1, "--bias", "--layout", "interleaved_up_gate:1")
        self.assertEqual(rows[1025, "fused", "fp64"]["violations"], 0)

    def test_other_types(self):
        for dtype, largest in (("fp16", 2.4e-4), ("fp32", 1e-6)):
            rows = self.comparisons("--sizes", "64", "--iterations", 2, "--dtype", dtype, "--activation", "gelu_tanh")
            fused = rows[64, "fused", "fp64"]
            self.assertEqual((fused["dtype"], fused["activation"], fused["iterations"]), (dtype, "gelu_tanh", 2))
            self.assertLess(fused["relative_mean"], largest)
