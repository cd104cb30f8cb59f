"""A wrong result ends in exit code 1 and a line that says where it is. A preloaded library makes it wrong."""

import json
import os

from support import QUICK, ToolTest, run_tool

SPOILED = {"LD_PRELOAD": os.environ["GATEFOLD_SPOILER"]}


class FailedCheck(ToolTest):
    def test_run(self):
        folder = self.checkpoint("--hidden-size", 32, "--intermediate-size", 48)
        output = self.folder / "y.safetensors"
        arguments = ("run", folder, "--tokens", 4, "--output", output, "--format", "json", *QUICK)
        done = run_tool(*arguments, env=SPOILED)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("check failed: gate_up", done.stderr)
        self.assertIn("row 0, column 0", done.stderr)
        rows = {row["way"]: row for row in json.loads(done.stdout)["rows"]}
        self.assertEqual(rows["gate_up"]["violations"], 1)
        self.assertGreater(rows["gate_up"]["max_bound_ratio"], 1)
        self.assertFalse(output.exists())

    def test_verify(self):
        done = run_tool("verify", "--sizes", 32, "--iterations", 1, env=SPOILED)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("check failed: size 32", done.stderr)
