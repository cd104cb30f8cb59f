"""What the tests of the tool share: running it, small checkpoints, and the safetensors format."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

TOOL = os.environ["GATEFOLD_TOOL"]
QUICK = ["--rounds", "1", "--min-time", "0"]


def run_tool(*arguments, env=None):
    """Runs the tool; its exit code, stdout and stderr."""
    environment = {k: v for k, v in os.environ.items() if k != "GATEFOLD_IMPL"}
    environment.update(env or {})
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=240)


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def good(self, *arguments):
        done = run_tool(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def table(self, *arguments):
        """The JSON of a subcommand, checked for its two parts."""
        table = json.loads(self.good(*arguments, "--format", "json"))
        self.assertEqual(list(table), ["context", "rows"])
        for key in ("version", "commit", "command", "date"):
            self.assertTrue(table["context"][key], key)
        return table

    def bad(self, *arguments, words=()):
        """Exit code 2, nothing on stdout, and one line on stderr that holds the words."""
        done = run_tool(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Agatefold: [^\n]+\n\Z")
        for word in words:
            self.assertIn(str(word), done.stderr)

    def checkpoint(self, *arguments, name="checkpoint"):
        folder = self.folder / name
        self.good("checkpoint", *arguments, "--output", folder)
        return folder


def read_safetensors(path):
    """name -> (dtype, shape, bytes)"""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    base = 8 + length
    return {
        name: (entry["dtype"], entry["shape"], data[base + entry["data_offsets"][0] : base + entry["data_offsets"][1]])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def floats(raw):
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def rows_of(tensor):
    """An F32 matrix as a list of rows."""
    dtype, (rows, columns), raw = tensor
    assert dtype == "F32", dtype
    values = floats(raw)
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]
