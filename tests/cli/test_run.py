"""gatefold run: the ways, their checks, and the tensors that it reads and writes."""

import itertools
import math
import random
import struct

from support import QUICK, ToolTest, floats, read_safetensors, rows_of, write_safetensors

FIELDS = {
    "op", "model", "tokens", "hidden_size", "intermediate_size", "dtype", "activation", "layout", "provider",
    "implementation", "time_us", "time_us_p10", "time_us_p90", "tflops", "gbps", "bytes_intermediate",
    "ratio_vs_unfused", "ratio_vs_gemm_only", "relative_l2", "max_bound_ratio", "violations", "peak_resident_bytes",
}  # fmt: skip
WAYS = ["unfused", "act_and_mul", "gemm_gated", "gate_up", "down_proj", "mlp"]


def silu(v):
    return v / (1 + math.exp(-v))


def product(a, b, bias):
    """a . b^T + bias"""
    return [[sum(p * q for p, q in zip(row, other)) + c for other, c in zip(b, bias)] for row in a]


class Run(ToolTest):
    def test_a_models_layer(self):
        folder = self.checkpoint("--model", "smollm2-135m", "--layers", 2)
        table = self.table("run", folder, "--layer", 1, "--tokens", 8, "--device", "cpu", "--seed", 7, *QUICK)
        rows = {row["way"]: row for row in table["rows"]}
        self.assertEqual(list(rows), WAYS)
        h_bytes = 8 * 1536 * 2
        for way, copies in (("unfused", 3), ("act_and_mul", 2), ("gemm_gated", 1), ("gate_up", 0), ("mlp", 1)):
            self.assertEqual(rows[way]["bytes_intermediate"], copies * h_bytes, way)
        for way, row in rows.items():
            self.assertLessEqual(FIELDS, set(row))
            self.assertEqual((row["tokens"], row["hidden_size"], row["intermediate_size"]), (8, 576, 1536))
            self.assertGreater(row["time_us"], 0)
            self.assertLessEqual(row["max_bound_ratio"], 1, way)
            self.assertEqual(row["violations"], 0, way)
            self.assertGreater(row["peak_resident_bytes"], 3 * 576 * 1536 * 2)
        self.assertEqual(rows["unfused"]["ratio_vs_unfused"], 1)
        # One rounding is closer to the truth than the three or four of the others.
        self.assertLess(rows["gate_up"]["relative_l2"], 1.9e-3)
        for way in ("unfused", "act_and_mul"):
            self.assertLess(rows["gate_up"]["relative_l2"], 0.65 * rows[way]["relative_l2"])
        self.assertLessEqual(rows["gate_up"]["h_bound_ratio"], 1)
        context = table["context"]
        self.assertEqual(context["seed"], 7)
        self.assertEqual(context["weight_bytes"], 3 * 576 * 1536 * 2)
        self.assertEqual(context["checked_rows"], 8)
        self.assertTrue(context["cpu"])

    def test_markdown_names_every_way(self):
        folder = self.checkpoint("--hidden-size", 32, "--intermediate-size", 48)
        text = self.good("run", folder, "--tokens", 4, *QUICK)
        for words in (*WAYS, "seed", "peak resident memory"):
            self.assertIn(words, text)

    def test_outputs_against_plain_python(self):
        generator = random.Random(5)
        tokens, hidden, intermediate = 3, 20, 28
        x = [generator.gauss(0, 1) for _ in range(tokens * hidden)]
        x_file = self.folder / "x.safetensors"
        write_safetensors(x_file, {"x": ("F32", [tokens, hidden], struct.pack(f"<{len(x)}f", *x))})
        sizes = ("--hidden-size", hidden, "--intermediate-size", intermediate, "--dtype", "fp32")
        for layout, bias in itertools.product(("separate", "gate_up"), ((), ("--mlp-bias",))):
            folder = self.checkpoint(*sizes, "--layout", layout, *bias, name=layout + "".join(bias))
            output = self.folder / f"{layout}.safetensors"
            table = self.table("run", folder, "--input", x_file, "--output", output, *QUICK)
            self.assertEqual({row["tokens"] for row in table["rows"]}, {tokens})
            self.assertIsNone(table["context"]["seed"])

            weights = read_safetensors(folder / "model.safetensors")
            mlp = {name.split(".")[-2]: rows_of(weights[name]) for name in weights if name.endswith("weight")}
            biases = {name.split(".")[-2]: floats(weights[name][2]) for name in weights if name.endswith("bias")}
            self.assertEqual(bool(biases), bool(bias))
            both = mlp.get("gate_up_proj") or mlp["gate_proj"] + mlp["up_proj"]
            none = (0.0,) * intermediate
            b_both = biases.get("gate_up_proj") or biases.get("gate_proj", none) + biases.get("up_proj", none)
            inputs = rows_of(read_safetensors(x_file)["x"])
            gate = product(inputs, both[:intermediate], b_both[:intermediate])
            up = product(inputs, both[intermediate:], b_both[intermediate:])
            h = [[silu(g) * u for g, u in zip(*pair)] for pair in zip(gate, up)]
            wanted = {"h": h, "y": product(h, mlp["down_proj"], biases.get("down_proj", (0.0,) * hidden))}
            written = read_safetensors(output)
            self.assertEqual(set(written), {"h", "y"})
            for name, rows in wanted.items():
                for row, expected in zip(rows_of(written[name]), rows):
                    for value, truth in zip(row, expected):
                        self.assertAlmostEqual(value, truth, delta=1e-5, msg=(layout, name))

    def test_activation_of_the_checkpoint_and_of_the_option(self):
        sizes = ("--hidden-size", 16, "--intermediate-size", 16)
        folder = self.checkpoint(*sizes, "--activation", "gelu_tanh")
        for options, wanted in (((), "gelu_tanh"), (("--activation", "relu"), "relu")):
            rows = self.table("run", folder, "--tokens", 2, *options, *QUICK)["rows"]
            self.assertEqual({row["activation"] for row in rows}, {wanted})

    def test_every_activation_passes_its_checks(self):
        folder = self.checkpoint("--hidden-size", 24, "--intermediate-size", 40, "--dtype", "fp16")
        for name in ("silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity", "swiglu_clamped"):
            rows = self.table("run", folder, "--tokens", 5, "--activation", name, *QUICK)["rows"]
            errors = [row["relative_l2"] for row in rows if row["relative_l2"] is not None]
            self.assertLess(max(errors), 2e-3, name)

    def test_no_tokens(self):
        folder = self.checkpoint("--hidden-size", 16, "--intermediate-size", 16)
        output = self.folder / "y.safetensors"
        rows = self.table("run", folder, "--tokens", 0, "--output", output, *QUICK)["rows"]
        self.assertEqual([row["way"] for row in rows], WAYS)
        self.assertEqual(read_safetensors(output)["y"], ("BF16", [0, 16], b""))

    def test_forced_implementation(self):
        folder = self.checkpoint("--hidden-size", 16, "--intermediate-size", 16)
        rows = self.table("run", folder, "--tokens", 2, "--impl", "reference", "--device", "cpu", *QUICK)["rows"]
        for row in rows:
            self.assertTrue(row["implementation"].startswith("reference"), row["way"])

    def test_rows_checked(self):
        folder = self.checkpoint("--hidden-size", 16, "--intermediate-size", 16)
        table = self.table("run", folder, "--tokens", 100, "--check-rows", 7, *QUICK)
        self.assertEqual(table["context"]["checked_rows"], 7)

    def test_whole_block(self):
        folder = self.checkpoint("--hidden-size", 16, "--intermediate-size", 16)
        table = self.table("run", folder, "--tokens", 4, "--whole-block", *QUICK)
        self.assertTrue(table["context"]["mlp_at_once"])
        self.assertEqual(table["rows"][-1]["way"], "mlp")

    def test_biases_pass_every_check(self):
        """Each way, the mlp at once among them, in each layout and type. A way's ops are held against their own inputs:
        that they are given the right bias shows in the distance of h from the truth of the whole, some 4 roundings."""
        for dtype, largest in (("bf16", 8e-3), ("fp16", 1e-3), ("fp32", 2e-6)):
            for layout in ("separate", "gate_up"):
                folder = self.checkpoint("--hidden-size", 40, "--intermediate-size", 56, "--dtype", dtype, "--layout",
                                         layout, "--mlp-bias", name=dtype + layout)  # fmt: skip
                for activation in ("silu", "swiglu_clamped"):
                    table = self.table("run", folder, "--tokens", 19, "--activation", activation, "--whole-block",
                                       *QUICK)  # fmt: skip
                    self.assertEqual([row["way"] for row in table["rows"]], WAYS)
                    for row in table["rows"]:
                        self.assertEqual(row["violations"], 0, row["way"])
                        self.assertGreater(row["max_bound_ratio"], 0, row["way"])
                        self.assertLess(row["relative_l2"], largest, row["way"])
                    self.assertEqual(table["context"]["biases"],
                                     "gate + up + down" if layout == "separate" else "gate + down")  # fmt: skip

    def test_mlp_at_once_is_checked(self):
        """Every activation, layout and type, to the bound that carries h's through w_down."""
        for dtype, largest in (("bf16", 5e-3), ("fp16", 6e-4), ("fp32", 2e-6)):
            for layout in ("separate", "gate_up"):
                folder = self.checkpoint("--hidden-size", 40, "--intermediate-size", 56, "--dtype", dtype, "--layout",
                                         layout, name=dtype + layout)  # fmt: skip
                for name in ("silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity", "swiglu_clamped"):
                    arguments = ("--tokens", 37, "--check-rows", 9, "--activation", name, "--whole-block", *QUICK)
                    row = self.table("run", folder, *arguments)["rows"][-1]
                    self.assertEqual((row["violations"], row["h_bound_ratio"]), (0, None))
                    self.assertGreater(row["max_bound_ratio"], 0, name)
                    self.assertLessEqual(row["max_bound_ratio"], 1, name)
                    self.assertGreater(row["relative_l2"], 0, name)
                    self.assertLess(row["relative_l2"], largest, name)
