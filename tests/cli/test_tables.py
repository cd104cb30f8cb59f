"""info, explain and checkpoint; and the forms that every table takes."""

import csv
import io
import json

from support import ToolTest, read_safetensors, run_tool


class Info(ToolTest):
    def test_devices_and_implementations(self):
        table = self.table("info")
        devices = {d["device"]: d for d in table["context"]["devices"]}
        self.assertGreater(devices["cpu"]["threads"], 0)
        self.assertTrue(devices["cpu"]["name"])
        self.assertTrue(devices["cuda"].get("absent") or devices["cuda"]["name"])
        cpu = {row["op"]: row["implementations"] for row in table["rows"] if row["device"] == "cpu"}
        self.assertEqual(set(cpu), {"act_and_mul", "gemm", "gemm_gated", "gate_up", "mlp"})
        for names in cpu.values():
            self.assertTrue(names.endswith("reference"))

    def test_threads_are_those_of_openmp(self):
        for number, environment in ((1, {"OMP_NUM_THREADS": "1"}), (3, {"OMP_NUM_THREADS": "3"}),
                                    (3, {"OMP_NUM_THREADS": "7", "OMP_THREAD_LIMIT": "3"})):  # fmt: skip
            done = run_tool("info", "--format", "json", env=environment)
            (cpu,) = (d for d in json.loads(done.stdout)["context"]["devices"] if d["device"] == "cpu")
            self.assertEqual(cpu["threads"], number, environment)
        self.assertIn(", 1 thread, ", run_tool("info", env={"OMP_NUM_THREADS": "1"}).stdout)

    def test_version(self):
        version = self.table("info")["context"]["version"]
        self.assertEqual(self.good("--version").strip(), f"gatefold {version}")

    def test_help_of_every_subcommand(self):
        for name in ("info", "run", "verify", "bench", "explain", "memory", "checkpoint"):
            self.assertIn(name, self.good(name, "--help"))


class Explain(ToolTest):
    def test_one_candidate_is_chosen_for_each_number_of_tokens(self):
        table = self.table("explain", "--model", "llama3.1-8b", "--device", "cpu", "--tokens", "0,1,4096")
        for tokens in (0, 1, 4096):
            rows = [row for row in table["rows"] if row["tokens"] == tokens]
            self.assertEqual(sum(row["chosen"] for row in rows), 1)
            self.assertEqual(rows[-1]["name"], "reference")
            self.assertTrue(all(row["reason"] for row in rows))
        description = table["context"]["description"]
        self.assertEqual(description["intermediate_size"], 14336)
        self.assertEqual(description["activation"], "silu")

    def test_every_op_layout_and_dtype(self):
        sizes = ("--hidden-size", 64, "--intermediate-size", 96, "--device", "cpu", "--tokens", 5)
        for op in ("act_and_mul", "act-and-mul", "gemm", "gemm_gated", "gate_up", "mlp"):
            for layout in ("separate", "gate_up", "up_gate", "interleaved_gate_up:8", "interleaved_up_gate"):
                for dtype in ("fp32", "fp16", "bf16"):
                    rows = self.table("explain", "--op", op, "--layout", layout, "--dtype", dtype, *sizes)["rows"]
                    self.assertEqual(sum(row["chosen"] for row in rows), 1, (op, layout, dtype))

    def test_forced(self):
        rows = self.table("explain", "--model", "llama3.2-1b", "--device", "cpu", "--impl", "reference")["rows"]
        self.assertEqual({row["name"] for row in rows if row["chosen"]}, {"reference"})

    def test_biases(self):
        table = self.table("explain", "--model", "llama3.1-8b", "--biases", "gate,up", "--device", "cpu")
        self.assertEqual(table["context"]["description"]["biases"], "gate + up")
        self.assertEqual({row["name"] for row in table["rows"] if row["chosen"]}, {"loops"})

    def test_batch_invariant(self):
        arguments = ("explain", "--model", "llama3.1-8b", "--device", "cpu", "--dtype", "fp32")
        for flags, wanted in (((), None), (("--batch-invariant",), True)):
            table = self.table(*arguments, *flags)
            self.assertEqual(table["context"]["description"]["batch_invariant"], wanted)
            self.assertEqual({row["name"] for row in table["rows"] if row["chosen"]}, {"loops"})

    def test_tensor_parallelism_divides_the_intermediate_size(self):
        table = self.table("explain", "--model", "llama3.1-8b", "--tp", 8, "--device", "cpu")
        self.assertEqual(table["context"]["description"]["intermediate_size"], 1792)


class Checkpoint(ToolTest):
    def test_tensors_of_a_model(self):
        folder = self.checkpoint("--model", "smollm2-135m", "--layers", 2)
        tensors = read_safetensors(folder / "model.safetensors")
        self.assertEqual(len(tensors), 6)
        self.assertEqual(tensors["model.layers.1.mlp.down_proj.weight"][:2], ("BF16", [576, 1536]))
        self.assertEqual(json.loads((folder / "config.json").read_text())["hidden_act"], "silu")

    def test_seed(self):
        sizes = ("--hidden-size", 16, "--intermediate-size", 24)
        first = self.checkpoint(*sizes, "--seed", 1, name="first")
        again = self.checkpoint(*sizes, "--seed", 1, name="again")
        other = self.checkpoint(*sizes, "--seed", 2, name="other")
        data = [(f / "model.safetensors").read_bytes() for f in (first, again, other)]
        self.assertEqual(data[0], data[1])
        self.assertNotEqual(data[0], data[2])


class Forms(ToolTest):
    def test_csv_has_the_fields_of_json(self):
        arguments = ("memory", "--model", "all")
        rows = self.table(*arguments)["rows"]
        lines = list(csv.DictReader(io.StringIO(self.good(*arguments, "--format", "csv"))))
        self.assertEqual(len(lines), len(rows))
        self.assertEqual(list(lines[0]), list(rows[0]))
        self.assertEqual([line["model"] for line in lines], [row["model"] for row in rows])
        self.assertEqual(int(lines[0]["saved_bytes"]), rows[0]["saved_bytes"])

    def test_markdown_columns_line_up(self):
        lines = [line for line in self.good("memory", "--model", "all").splitlines() if line.startswith("|")]
        self.assertGreater(len(lines), 30)
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_output_file_replaces_stdout(self):
        file = self.folder / "table.json"
        self.assertEqual(self.good("memory", "--format", "json", "--output", file), "")
        self.assertEqual(json.loads(file.read_text())["context"]["command"], f"gatefold memory --format json --output {file}")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["table.json"])

    def test_no_progress_where_stderr_is_no_terminal(self):
        self.assertEqual(run_tool("verify", "--sizes", 8, "--iterations", 1).stderr, "")
