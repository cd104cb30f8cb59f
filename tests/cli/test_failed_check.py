"""A wrong result ends in exit code 1 and a line that says where it is. A preloaded library makes a random element wrong."""

import csv
import io
import json
import math
import os
import random

from support import QUICK, ToolTest, run_tool

TOKENS, HIDDEN, INTERMEDIATE = 4, 32, 48


class FailedCheck(ToolTest):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("GATEFOLD_TEST_SEED") or random.randrange(2**32))
        print(f"GATEFOLD_TEST_SEED={seed} repeats this run", flush=True)
        self.random = random.Random(seed)

    def spoiled(self, tensor, rows, columns):
        """The environment that spoils an element of h or y, and where it is, in words."""
        element = self.random.randrange(rows * columns)
        environment = {"LD_PRELOAD": os.environ["GATEFOLD_SPOILER"], f"GATEFOLD_SPOIL_{tensor}": str(element)}
        return environment, f"row {element // columns}, column {element % columns}"

    def run_spoiled(self, environment, *arguments):
        """Runs a checkpoint's layer; what is on stderr, and the rows by their way."""
        folder = self.checkpoint("--hidden-size", HIDDEN, "--intermediate-size", INTERMEDIATE)
        output = self.folder / "y.safetensors"
        arguments = ("run", folder, "--tokens", TOKENS, "--output", output, "--format", "json", *arguments, *QUICK)
        done = run_tool(*arguments, env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse(output.exists())
        return done.stderr, {row["way"]: row for row in json.loads(done.stdout)["rows"]}

    def test_run(self):
        environment, place = self.spoiled("H", TOKENS, INTERMEDIATE)
        errors, rows = self.run_spoiled(environment)
        self.assertIn("check failed: gate_up", errors)
        for line in errors.splitlines():
            self.assertTrue(line.endswith(place), line)
        self.assertEqual(rows["gate_up"]["violations"], 1)
        self.assertGreater(rows["gate_up"]["max_bound_ratio"], 1)

    def test_run_of_the_whole_block(self):
        environment, place = self.spoiled("Y", TOKENS, HIDDEN)
        errors, rows = self.run_spoiled(environment, "--whole-block")
        self.assertIn("check failed: mlp", errors)
        self.assertTrue(errors.endswith(place + "\n"), errors)
        self.assertEqual({way: row["violations"] for way, row in rows.items() if row["violations"]}, {"mlp": 1})
        self.assertGreater(rows["mlp"]["max_bound_ratio"], 1)

    def test_infinity_is_a_number_in_every_form(self):
        environment, _ = self.spoiled("H", TOKENS, INTERMEDIATE)
        environment["GATEFOLD_SPOIL_TO_NAN"] = "1"
        _, rows = self.run_spoiled(environment)
        self.assertEqual(rows["gate_up"]["max_bound_ratio"], "inf")
        folder = self.checkpoint("--hidden-size", HIDDEN, "--intermediate-size", INTERMEDIATE, name="again")
        done = run_tool("run", folder, "--tokens", TOKENS, "--format", "csv", *QUICK, env=environment)
        ratios = {line["way"]: line["max_bound_ratio"] for line in csv.DictReader(io.StringIO(done.stdout))}
        self.assertEqual(float(ratios["gate_up"]), math.inf)

    def test_sampled_rows_have_the_last_among_them(self):
        """However many rows are checked of however many, the last one is."""
        for tokens, checked in (50, 7), (49, 7), (51, 7), (9, 1):
            with self.subTest(tokens=tokens, checked=checked):
                element = tokens * INTERMEDIATE - 1
                environment = {"LD_PRELOAD": os.environ["GATEFOLD_SPOILER"], "GATEFOLD_SPOIL_H": str(element)}
                folder = self.checkpoint("--hidden-size", HIDDEN, "--intermediate-size", INTERMEDIATE, name=f"of-{tokens}")
                done = run_tool("run", folder, "--tokens", tokens, "--check-rows", checked, *QUICK, env=environment)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"row {tokens - 1}, column {INTERMEDIATE - 1}", done.stderr)

    def test_verify(self):
        environment, _ = self.spoiled("H", 32, 32)
        done = run_tool("verify", "--sizes", 32, "--iterations", 1, env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("check failed: size 32: 1 elements", done.stderr)

    def test_swap_ffn_verify(self):
        sizes = ("--hidden-size", HIDDEN, "--intermediate-size", INTERMEDIATE, "--cores", 3, "--events", 1, "--steps", 2)
        environment, _ = self.spoiled("DELTA", 1, HIDDEN)
        done = run_tool("swap-ffn", "verify", *sizes, "--format", "json", env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Agatefold: swap-ffn verify: [^\n]+\n\Z")
        for row in json.loads(done.stdout)["rows"]:  # delta is of each step alone
            self.assertEqual((row["violations"], row["wrong_decisions"], row["wrong_moves"]), (1, 0, 0))
            self.assertGreater(row["max_bound_ratio"], 1)
