"""Bad usage and bad input: exit code 2, one line that names the thing and the values, and nothing half-written."""

import ctypes
import os
import struct
import subprocess

from support import QUICK, TOOL, ToolTest, run_tool, write_safetensors

PR_CAPBSET_DROP = 24  # linux/prctl.h
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2  # linux/capability.h


def obey_file_modes():
    """In the child, before the program starts: what root loses by this is the right to open what no mode allows.

    Another user than root would not do: the folder that the program lies in may be closed to everybody else.
    """
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")


class Usage(ToolTest):
    def test_command_line(self):
        self.bad(words=["subcommand"])
        self.bad("dance")
        self.bad("info", "--no-such-option")
        self.bad("run", words=["checkpoint"])
        self.bad("explain", "--tokens", "many")
        self.bad("run", "somewhere", "--tokens", "99999999999999999999", words=["99999999999999999999"])

    def test_names(self):
        self.bad("memory", "--model", "llama3.1-9b", words=["llama3.1-9b", "llama3.1-8b"])
        self.bad("memory", "--format", "xml", words=["xml", "md, csv, json"])
        self.bad("memory", "--dtype", "int8", words=["int8", "bf16"])
        sizes = ("--hidden-size", 16, "--intermediate-size", 24)
        self.bad("explain", *sizes, "--op", "conv", words=["conv", "gate_up"])
        self.bad("explain", *sizes, "--layout", "diagonal", words=["diagonal", "separate"])
        self.bad("explain", *sizes, "--layout", "gate_up:8", words=["gate_up:8"])
        self.bad("explain", *sizes, "--layout", "interleaved_gate_up:x", words=['"x"'])
        self.bad("explain", *sizes, "--activation", "tanh", words=["tanh", "silu"])
        self.bad("explain", *sizes, "--biases", "gate,left", words=["left", "gate, up, down"])
        self.bad("explain", *sizes, "--op", "gemm", "--biases", "gate", words=["biases: 1", "gemm", "up 2"])
        self.bad("explain", *sizes, "--layout", "gate_up", "--biases", "up", words=["biases: 2", "gate_up", "gate 1"])
        self.bad("explain", *sizes, "--device", "tpu", words=["tpu", "cuda"])
        self.bad("explain", *sizes, "--device", "cpu", "--impl", "magic", words=["magic", "reference"])
        self.bad("explain", *sizes, "--device", "cpu", "--impl", "reference:64x64", words=["no kernel", "64x64"])
        self.bad("bench", "--device", "cpu", "--provider", "magic", words=["magic", "gemm-only"])
        self.bad("verify", "--device", "cpu", "--impl", "magic", words=["magic", "reference"])

    def test_values(self):
        self.bad("memory", "--chunk", 0, words=["--chunk", "0", "1"])
        self.bad("memory", "--chunk", 2**62, "--model", "llama3.1-8b", words=[2**62, "overflow"])
        self.bad("explain", "--model", "llama3.1-8b", "--tp", 3, words=["14336", "llama3.1-8b", "3"])
        self.bad("explain", "--model", "llama3.1-8b", "--tp", 0, words=["--tp", "0"])
        self.bad("explain", "--hidden-size", 16, "--intermediate-size", 24, "--tp", 2, words=["--tp", "2", "--model"])
        self.bad("explain", "--model", "llama3.1-8b", "--hidden-size", 16, words=["llama3.1-8b", "--hidden-size"])
        self.bad("explain", words=["--model"])
        self.bad("explain", "--hidden-size", -5, "--intermediate-size", 24, words=["hidden_size", "-5"])
        self.bad("explain", "--hidden-size", 16, "--intermediate-size", 20, "--layout", "interleaved_gate_up:8",
                 words=["20", "8"])
        self.bad("explain", "--hidden-size", 2**40, "--intermediate-size", 2**40, words=[2**40, "overflow"])
        self.bad("explain", "--model", "llama3.1-8b", "--tokens", "4,-4", words=["--tokens", "-4"])
        self.bad("bench", "--rounds", 0, words=["--rounds", "0"])
        self.bad("bench", "--min-time", -1, words=["--min-time", "-1"])
        self.bad("verify", "--sizes", "16,-16", words=["--sizes", "-16"])
        self.bad("verify", "--iterations", 0, words=["--iterations", "0"])
        self.bad("checkpoint", "--model", "smollm2-135m", "--layers", 0, "--output", self.folder / "c",
                 words=["--layers", "0"])

    def test_numbers_are_decimal(self):
        self.assertEqual(self.table("memory", "--model", "llama3.1-8b", "--chunk", "010")["rows"][0]["chunk"], 10)
        for text in ("", "0x10", "1e3", " 5", "5 ", "+5", "1.0", "many"):
            self.bad("memory", "--chunk", text, words=["--chunk", f'"{text}"', "decimal"])
        self.bad("run", "somewhere", "--tokens", "", words=["--tokens", '""'])
        self.bad("run", "somewhere", "--seed", "-1", words=["--seed", "-1"])
        self.bad("explain", "--model", "llama3.1-8b", "--tokens", "4,0x4", words=["--tokens", "0x4"])
        for text in ("inf", "nan", "infinity", "", "1ms", "1e999"):
            self.bad("bench", "--min-time", text, words=["--min-time", text])

    def test_missing_and_repeated_options(self):
        self.bad("explain", "--intermediate-size", 8, words=["--hidden-size", "missing", "8"])
        self.bad("explain", "--hidden-size", 8, words=["--intermediate-size", "missing", "8"])
        self.good("explain", "--op", "act_and_mul", "--intermediate-size", 8)
        self.bad("memory", "--chunk", 5, "--chunk", 6, words=["--chunk", "given 2 times", "once"])

    def test_models_that_come_close(self):
        self.bad("memory", "--model", "llama-8b", words=["llama3.1-8b", "llama2-7b"])

    def test_cuda_where_there_is_none(self):
        if "absent" not in str(self.table("info")["context"]["devices"]):
            self.skipTest("this machine has a GPU")
        self.bad("run", self.checkpoint("--hidden-size", 16, "--intermediate-size", 24), "--device", "cuda",
                 words=["cuda is not there"])
        self.bad("bench", "--device", "cuda", words=["cuda is not there"])
        self.bad("verify", "--device", "cuda", words=["cuda is not there"])


class Files(ToolTest):
    def setUp(self):
        super().setUp()
        self.model = self.checkpoint("--hidden-size", 16, "--intermediate-size", 24, "--layers", 2)
        self.before = sorted(self.folder.rglob("*"))

    def bad_run(self, *arguments, words):
        self.bad("run", *arguments, *QUICK, words=words)
        self.assertEqual(sorted(p for p in self.folder.rglob("*") if p.suffix != ".x"), self.before)

    def x_file(self, dtype, shape, size, name="x"):
        file = self.folder / "input.x"
        write_safetensors(file, {name: (dtype, shape, bytes(size))})
        return file

    def test_checkpoints(self):
        self.bad_run(self.folder / "nowhere", words=["nowhere"])
        self.bad_run(self.model, "--layer", 2, words=["layer", "2"])
        self.bad_run(self.model, "--layer", -1, words=["--layer", "-1"])
        self.bad_run(self.model, "--tokens", -1, words=["--tokens", "-1"])
        self.bad_run(self.model, "--tokens", 2**60, words=["overflow"])
        if "GATEFOLD_SANITIZED" not in os.environ:  # AddressSanitizer ends a program that asks for so much
            self.bad_run(self.model, "--tokens", 2**48, words=["memory"])

    def test_what_may_not_be_read(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0)
        for checkpoint in (closed, closed / "inside"):
            done = subprocess.run([TOOL, "run", checkpoint], capture_output=True, text=True, timeout=60,
                                  preexec_fn=obey_file_modes)  # fmt: skip
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{checkpoint}", done.stderr)
            self.assertIn("Permission denied", done.stderr)

    def test_names_that_are_not_utf8(self):
        latin = self.folder / os.fsdecode(b"caf\xe9")
        self.model.rename(latin)
        output = self.folder / "y.safetensors"
        arguments = ("run", latin, "--tokens", 2, "--output", output, *QUICK)
        self.bad(*arguments, "--format", "json", words=["--format", "UTF-8"])
        self.assertFalse(output.exists())
        done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"caf\xe9", done.stdout)
        output.unlink()
        # Not in the command line, but where it is run.
        done = subprocess.run([TOOL, "run", ".", *map(str, arguments[2:]), "--format", "json"], capture_output=True,
                              timeout=60, cwd=latin)  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertRegex(done.stderr, rb"\Agatefold: --format: [^\n]*UTF-8[^\n]*\n\Z")
        self.assertFalse(output.exists())

    def test_truncated_checkpoint(self):
        file = self.model / "model.safetensors"
        data = file.read_bytes()
        file.write_bytes(data[:-100])
        self.bad_run(self.model, words=["model.safetensors"])

    def test_checkpoint_without_an_activation(self):
        (self.model / "config.json").unlink()
        self.before = sorted(self.folder.rglob("*"))
        self.bad_run(self.model, words=["--activation"])

    def test_inputs(self):
        wrong = self.x_file("F32", [4, 16], 256)
        self.bad_run(self.model, "--input", wrong, words=["input.x", "x", "F32", "BF16"])
        wrong = self.x_file("BF16", [4, 17], 136)
        self.bad_run(self.model, "--input", wrong, words=["[4, 17]", "16"])
        wrong = self.x_file("BF16", [64], 128)
        self.bad_run(self.model, "--input", wrong, words=["[64]"])
        right = self.x_file("BF16", [4, 16], 128)
        self.bad_run(self.model, "--input", right, "--tokens", 5, words=["[4, 16]", "5"])
        wrong = self.x_file("BF16", [4, 16], 128, name="z")
        self.bad_run(self.model, "--input", wrong, words=["input.x", "x"])
        self.bad_run(self.model, "--input", self.folder / "nowhere.x", words=["nowhere.x"])
        long_header = self.folder / "input.x"
        long_header.write_bytes(struct.pack("<Q", 1 << 40) + b"{}")
        self.bad_run(self.model, "--input", long_header, words=["input.x", 1 << 40])

    def test_outputs_stay_as_they_were(self):
        old = self.folder / "old.x"
        old.write_text("old")
        self.bad_run(self.model, "--layer", 9, "--output", old, words=["9"])
        self.assertEqual(old.read_text(), "old")
        self.bad_run(self.model, "--tokens", 2, "--output", self.folder / "no" / "y", words=["no/y"])
        self.bad("memory", "--output", self.folder / "no" / "table.md", words=["no/table.md"])
        self.assertFalse((self.folder / "no").exists())

    def test_generated_checkpoint_replaces_nothing_unasked(self):
        self.bad("checkpoint", "--hidden-size", 16, "--intermediate-size", 24, "--output", self.model,
                 words=[self.model.name])
        self.assertEqual(run_tool("run", self.model, "--tokens", 2, *QUICK).returncode, 0)
