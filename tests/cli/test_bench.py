"""gatefold bench: rows of every op and provider."""

import json
import math
import pathlib

from support import QUICK, ToolTest, run_tool

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

    def test_a_limit_leaves_whole_cells_out(self):
        cells = ("bench", "gate_up", "--model", "smollm2-135m,smollm2-360m", "--tokens", "1,2,3", "--device", "cpu")
        table = self.table(*cells, "--provider", "gatefold", *QUICK, "--seconds", "1e-9")
        self.assertEqual([(row["model"], row["tokens"]) for row in table["rows"]], [("smollm2-135m", 1)])
        self.assertEqual(table["context"]["cells_left_out"], 5)
        text = run_tool(*cells, "--provider", "gatefold", *QUICK, "--seconds", "1e-9").stdout
        self.assertIn("5 cells were left out", text)
        table = self.table(*cells, "--provider", "gatefold", *QUICK, "--seconds", "600")
        self.assertEqual((len(table["rows"]), table["context"]["cells_left_out"]), (6, 0))
        self.bad(*cells, "--seconds", "-1", words=["--seconds", "-1"])
        self.bad(*cells, "--seconds", "nan", words=["--seconds"])

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

    def check_roofline(self, table):
        """Of one round, every fraction is what the row's time, bytes and flops and its own peaks say."""
        best = table["context"]
        for row in table["rows"]:
            memory = row["bytes"] / (row["read_gbps"] * 1e3)  # us
            compute = row["flops"] / (row["peak_tflops"] * 1e6) if row["flops"] else 0
            near = {"rel_tol": 1e-9}
            for key, value in (
                ("bound_time_us", max(memory, compute)),
                ("fraction_of_bound", max(memory, compute) / row["time_us"]),
                ("fraction_of_read_bandwidth", memory / row["time_us"]),
            ):
                self.assertTrue(math.isclose(row[key], value, **near), (key, row[key], value))
            self.assertEqual(row["bound"], "memory" if memory >= compute else "compute")
            self.assertLessEqual(row["read_gbps"], best["read_gbps"] * (1 + 1e-9))
            if row["flops"]:
                self.assertTrue(math.isclose(row["fraction_of_peak"], compute / row["time_us"], **near), row)
                self.assertLessEqual(row["peak_tflops"], best["unit_tflops"][row["unit"]] * (1 + 1e-9))
            else:
                self.assertIsNone(row["fraction_of_peak"])
        rows = [row["read_gbps"] for row in table["rows"]]
        self.assertTrue(math.isclose(max(rows), best["read_gbps"], rel_tol=1e-9), (rows, best))
        # In the rounds of rows without products a peak is measured as well.
        for unit, peak in best["unit_tflops"].items():
            rows = [row["peak_tflops"] for row in table["rows"] if row["unit"] == unit]
            if all(row["unit"] for row in table["rows"]):
                self.assertTrue(math.isclose(max(rows), peak, rel_tol=1e-9), (rows, best))

    def test_roofline(self):
        table = self.table("bench", "gate_up", "mlp", "act_and_mul", *CELL, "--roofline", *QUICK)
        rows = {(row["op"], row["provider"]): row for row in table["rows"]}
        row = rows["gate_up", "gatefold"]
        self.assertEqual(row["flops"], 4 * 4 * 576 * 1536)
        # x, both weights, h
        self.assertEqual(row["bytes"], 2 * (4 * 576 + 2 * 576 * 1536 + 4 * 1536))
        self.assertEqual(set(table["context"]["unit_tflops"]), {row["unit"]})
        self.assertEqual({row["unit"] for row in rows.values() if row["flops"]}, {row["unit"]})
        self.assertIsNone(rows["act_and_mul", "eager"]["unit"])
        self.assertNotIn("peak_gbps", table["context"])
        # Beside other work, under a sanitizer, they may be as low as they like.
        self.assertGreater(table["context"]["read_gbps"], 0)
        self.assertGreater(min(table["context"]["unit_tflops"].values()), 0)
        self.check_roofline(table)

    def test_peak_of_the_instruction_set_that_runs(self):
        cell = ("gate_up", *CELL, "--dtype", "fp32", "--roofline", *QUICK)
        table = self.table("bench", *cell, "--impl", "loops:portable", "--provider", "gatefold,unfused")
        self.assertEqual([row["unit"] for row in table["rows"]], ["portable", "portable"])
        self.assertEqual(list(table["context"]["unit_tflops"]), ["portable"])
        self.check_roofline(table)
        # Each row its own.
        table = self.table("bench", *cell, "--provider", "gatefold,gatefold:loops:portable")
        self.assertEqual(table["rows"][1]["unit"], "portable")
        self.assertEqual(set(table["context"]["unit_tflops"]), {row["unit"] for row in table["rows"]})
        self.check_roofline(table)
        # The environment reaches the ops inside an mlp; --impl forces only ops that have the implementation.
        for env, forced in (({"GATEFOLD_IMPL": "loops:portable"}, True), ({}, False)):
            done = run_tool("bench", "mlp", *cell[1:], "--provider", "gatefold", "--impl",
                            "loops:portable" if not forced else "composed", "--format", "json", env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            fastest = table["rows"][0]["unit"]
            self.assertEqual(json.loads(done.stdout)["rows"][0]["unit"], "portable" if forced else fastest)

    def test_chunk_and_batch_invariant(self):
        """Of so many tokens at a time; the intermediates are h of one chunk."""
        cell = ("bench", "mlp", "--model", "smollm2-135m", "--device", "cpu", "--provider", "gatefold", *QUICK)
        for tokens, chunk, left in ((24, 0, 24), (24, 8, 8), (24, 7, 7), (24, 24, 24), (24, 100, 24)):
            row = self.table(*cell, "--tokens", str(tokens), "--chunk", str(chunk))["rows"][0]
            self.assertEqual(row["bytes_intermediate"], 2 * left * 1536, (tokens, chunk))
        row = self.table(*cell, "--tokens", "24", "--batch-invariant")["rows"][0]
        self.assertEqual((row["op"], row["tokens"], row["provider"]), ("mlp", 24, "gatefold"))
        self.bad("bench", *CELL, "--chunk", "4", words=["--chunk: 4", "mlp"])
        self.bad("bench", "mlp", *CELL, "--chunk", "-1", words=["--chunk", "-1"])

    def test_no_peak(self):
        words = ["--roofline", '"reference"', "portable"]
        self.bad("bench", *CELL, "--roofline", "--impl", "reference", words=[*words, "gate_up of gatefold"])
        self.bad("bench", "mlp", *CELL, "--roofline", "--provider", "gatefold:reference", words=words)
        done = run_tool("bench", *CELL, "--roofline", env={"GATEFOLD_IMPL": "reference"})
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn('runs on "reference"', done.stderr)

    def test_roofline_table(self):
        text = self.good("bench", *CELL, "--roofline", "--provider", "gatefold", *QUICK)
        for words in ("of read bandwidth", "of peak", "unit", "best measured here: read "):
            self.assertIn(words, text)

    def test_weights_rotate_past_the_cache(self):
        for op, halves in (("gate_up", 2), ("mlp", 3)):
            context = self.table("bench", op, *CELL, *QUICK)["context"]
            set_bytes = halves * 2 * 576 * 1536
            self.assertEqual(context["rotated_bytes"] % set_bytes, 0)
            # The fewest sets that are together larger than four times the cache.
            self.assertGreater(context["rotated_bytes"], 4 * context["cache_bytes"])
            self.assertLessEqual(context["rotated_bytes"] - set_bytes, 4 * context["cache_bytes"])
        context = self.table("bench", "act_and_mul", *CELL, *QUICK)["context"]
        self.assertIsNone(context["rotated_bytes"])

    def test_cache_bytes_are_the_systems(self):
        caches = {}
        for folder in pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
            key = (int((folder / "level").read_text()), (folder / "shared_cpu_list").read_text())
            caches[key] = int((folder / "size").read_text().strip().removesuffix("K")) * 1024
        if not caches or max(caches)[0] < 3:
            self.skipTest("the system says nothing of a third-level cache")
        last = sum(size for (level, _), size in caches.items() if level == max(caches)[0])
        self.assertEqual(self.table("bench", *CELL, *QUICK)["context"]["cache_bytes"], last)
