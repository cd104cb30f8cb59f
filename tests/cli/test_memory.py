"""gatefold memory, against figures worked out by hand."""

from support import ToolTest

KEYS = {
    "model", "chunk", "up_scaling", "unfused_bytes", "overwriting_bytes", "fused_bytes", "saved_bytes",
    "layer_share_saved", "kv_bytes_per_token", "extra_kv_tokens",
}  # fmt: skip


class Memory(ToolTest):
    def row(self, *arguments):
        rows = self.table("memory", *arguments)["rows"]
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_llama_8b(self):
        # T 512, D 4096, F 14336, bf16; 32 layers, 8 KV heads of 128
        row = self.row("--model", "llama3.1-8b", "--chunk", 512)
        self.assertLessEqual(KEYS, set(row))
        self.assertEqual(row["model"], "llama3.1-8b")
        self.assertEqual(row["chunk"], 512)
        self.assertEqual(row["up_scaling"], 3.5)
        self.assertEqual(row["fused_bytes"], 14_680_064)
        self.assertEqual(row["overwriting_bytes"], 29_360_128)
        self.assertEqual(row["unfused_bytes"], 44_040_192)
        self.assertEqual(row["saved_bytes"], 29_360_128)
        self.assertEqual(row["kv_bytes_per_token"], 131_072)
        self.assertEqual(row["extra_kv_tokens"], 224)
        # of (4 + 3 x 3.5 + 1) T D elements, 2 x 3.5 are saved; overwriting, 3.5 of (3 + 2 x 3.5 + 1)
        self.assertAlmostEqual(row["layer_share_saved"], 7 / 15.5, places=12)
        self.assertAlmostEqual(row["overwriting_layer_share_saved"], 3.5 / 11, places=12)

    def test_fp32_doubles_activations_and_cache(self):
        row = self.row("--model", "llama3.1-8b", "--chunk", 512, "--dtype", "fp32")
        self.assertEqual(row["unfused_bytes"], 88_080_384)
        self.assertEqual(row["extra_kv_tokens"], 224)

    def test_part_of_a_token_is_no_token(self):
        # phi3-mini: 2 x 7 x 8192 x 2 = 229,376 bytes saved; 2 x 32 x 32 x 96 x 2 = 393,216 bytes a token
        row = self.row("--model", "phi3-mini", "--chunk", 7)
        self.assertEqual(row["saved_bytes"], 229_376)
        self.assertEqual(row["kv_bytes_per_token"], 393_216)
        self.assertEqual(row["extra_kv_tokens"], 0)

    def test_all_models_most_tokens_first(self):
        table = self.table("memory", "--model", "all")
        tokens = [row["extra_kv_tokens"] for row in table["rows"]]
        known = [t for t in tokens if t is not None]
        self.assertGreater(len(known), 30)
        self.assertEqual(tokens, sorted(known, reverse=True) + [None] * (len(tokens) - len(known)))
        without = {row["model"] for row in table["rows"] if row["extra_kv_tokens"] is None}
        self.assertIn("deepseek-v3-dense", without)
        self.assertIn("gpt-oss-20b", without)
        self.assertTrue(all(r["kv_bytes_per_token"] is None for r in table["rows"] if r["model"] in without))
        self.assertIn("key-value heads", self.good("memory", "--model", "all"))
