"""gatefold bench: rows of every op and provider."""

from support import QUICK, ToolTest

ROW = [
    "op", "model", "tokens", "hidden_size", "intermediate_size", "dtype", "activation", "layout", "provider",
    "implementation", "time_us", "time_us_p10", "time_us_p90", "tflops", "gbps", "bytes_intermediate",
    "ratio_vs_unfused", "ratio_vs_gemm_only", "memory_bytes",
]  # fmt: skip
CELL = ("--model", "smollm2-135m", "--tokens", "4", "--device", "cpu")


class Bench(ToolTest):
    def test_gate_up(self):
        table = self.table("bench", *CELL, "--rounds", 3, "--min-time", 1)
        rows = {row["provider"]: row for row in table["rows"]}
        self.assertEqual(list(rows), ["gatefold", "unfused", "eager", "gemm-only"])
        for row in rows.values():
            self.assertEqual(list(row), ROW)
            self.assertLessEqual(row["time_us_p10"], row["time_us"])
            self.assertLessEqual(row["time_us"], row["time_us_p90"])
            # Ratios are medians over rounds, so they are near the ratio of the medians.
            self.assertGreater(row["ratio_vs_unfused"], 0)
            flops = 4 * 4 * 576 * 1536
            self.assertAlmostEqual(row["tflops"], flops / row["time_us"] * 1e-6, delta=1e-3 * row["tflops"])
        self.assertEqual(rows["unfused"]["ratio_vs_unfused"], 1)
        self.assertEqual(rows["gemm-only"]["ratio_vs_gemm_only"], 1)
        self.assertEqual(rows["gatefold"]["bytes_intermediate"], 0)
        h_bytes = 4 * 1536 * 2
        for provider, tensors in (("gatefold", 1), ("unfused", 3), ("eager", 4)):  # h; gate and up; activated
            self.assertGreaterEqual(rows[provider]["memory_bytes"], tensors * h_bytes, provider)
        self.assertEqual(table["context"]["rounds"], 3)

    def test_every_op(self):
        ops = ("act-and-mul", "gemm", "gemm_gated", "gate_up", "mlp")
        rows = self.table("bench", *ops, *CELL, *QUICK)["rows"]
        providers = {}
        for row in rows:
            providers.setdefault(row["op"], []).append(row["provider"])
        products = ["gatefold", "unfused", "eager", "gemm-only"]
        self.assertEqual(
            providers,
            {
                "act_and_mul": ["gatefold", "eager", "copy"],
                "gemm": ["gatefold", "gemm-only"],
                "gemm_gated": products,
                "gate_up": products,
                "mlp": products,
            },
        )
        for row in rows:
            if row["op"] == "act_and_mul":
                self.assertGreater(row["ratio_vs_eager"], 0)
                self.assertGreater(row["ratio_vs_copy"], 0)

    def test_forced_implementations_side_by_side(self):
        providers = "gatefold:reference,gatefold,unfused"
        rows = self.table("bench", "gate_up", *CELL, "--provider", providers, *QUICK)["rows"]
        self.assertEqual([row["provider"] for row in rows], providers.split(","))
        self.assertEqual(rows[0]["implementation"], "reference")
        self.assertNotEqual(rows[1]["implementation"], "reference")
        self.assertGreater(rows[0]["ratio_vs_unfused"], 0)
        for name, message in (("gatefold:nothing", "nothing"), ("unfused:reference", "only gatefold takes")):
            self.bad("bench", *CELL, "--provider", name, words=[message])

    def test_models_tokens_and_layouts(self):
        rows = self.table("bench", "--model", "smollm2-135m,smollm2-360m", "--tokens", "1,3", "--tp", 2, "--layout",
                          "interleaved_gate_up:8", "--provider", "gatefold,unfused", "--device", "cpu", *QUICK)["rows"]
        cells = [(row["model"], row["intermediate_size"], row["tokens"], row["provider"]) for row in rows]
        wanted = [(model, size, tokens, provider) for model, size in (("smollm2-135m", 768), ("smollm2-360m", 1280))
                  for tokens in (1, 3) for provider in ("gatefold", "unfused")]
        self.assertEqual(cells, wanted)
        self.assertEqual({row["layout"] for row in rows}, {"interleaved_gate_up:8"})

    def test_roofline(self):
        table = self.table("bench", *CELL, "--roofline", "--provider", "gatefold", *QUICK)
        (row,) = table["rows"]
        self.assertEqual(row["flops"], 4 * 4 * 576 * 1536)
        # x, both weights, h
        self.assertEqual(row["bytes"], 2 * (4 * 576 + 2 * 576 * 1536 + 4 * 1536))
        self.assertIn(row["bound"], ("memory", "compute"))
        self.assertGreater(row["fraction_of_bound"], 0)
        self.assertGreater(table["context"]["peak_gbps"], 0)
        self.assertGreater(table["context"]["peak_tflops"], 0)
