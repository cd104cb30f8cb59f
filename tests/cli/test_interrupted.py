"""Killed at any point, the tool leaves the old files or the new ones, and nothing that is in the way of the next call.
A preloaded library kills it before its first call that changes a file, before its second, and so on."""

import os
import signal

from support import QUICK, ToolTest, run_tool

SMALL = ("checkpoint", "--hidden-size", 16, "--intermediate-size", 24, "--layers", 2, "--sharded")
NO_TMPFILE = {"GATEFOLD_WITHOUT_TMPFILE": "1"}


def contents(folder):
    """name -> bytes, of all files below"""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Interrupted(ToolTest):
    def interrupt(self, number, by, environment, *arguments):
        """Whether the tool came to that call."""
        environment = {"LD_PRELOAD": os.environ["GATEFOLD_INTERRUPTER"], "GATEFOLD_INTERRUPT_AT": str(number),
                       "GATEFOLD_INTERRUPT_BY": str(int(by)), **environment}  # fmt: skip
        done = run_tool(*arguments, env=environment)
        self.assertIn(done.returncode, (0, -by), done.stderr)
        return done.returncode != 0

    def sweep(self, by, environment, *arguments):
        """Interrupts the call everywhere; yields after each time, and at last after the call that went through."""
        for number in range(1, 1000):
            interrupted = self.interrupt(number, by, environment, *arguments)
            yield
            if not interrupted:
                self.assertGreater(number, 2, "the sweep has stopped nothing")
                return
        self.fail("the tool does not come to an end")

    def each_way(self):
        for by in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            for environment in ({}, NO_TMPFILE):
                yield by, environment

    def expect_no_leftovers(self, by, environment, most):
        """After a signal that can be handled nothing is left. After SIGKILL what is left is hidden, and no partial
        file unless the file system knows no other; the next call removes it."""
        hidden = [p for p in self.folder.rglob(".gatefold-*")]
        if by != signal.SIGKILL:
            self.assertEqual(hidden, [])
        self.assertLessEqual(len(hidden), most)

    def old_checkpoint(self):
        folder = self.folder / "model"
        self.good(*SMALL, "--seed", 1, "--activation", "relu", "--output", folder, "--overwrite")
        (folder / "notes.txt").write_text("mine")
        return folder

    def test_a_checkpoint_is_overwritten_at_once(self):
        new = self.folder / "new"
        arguments = (*SMALL, "--seed", 2, "--activation", "silu", "--dtype", "fp16")
        self.good(*arguments, "--output", new)
        wanted = {**contents(new), "notes.txt": b"mine"}
        for by, environment in self.each_way():
            folder = self.old_checkpoint()
            before = contents(folder)
            seen = set()
            for _ in self.sweep(by, environment, *arguments, "--output", folder, "--overwrite"):
                now = {name: data for name, data in contents(folder).items() if not name.startswith(".gatefold-")}
                self.assertIn(now, (before, wanted))
                self.expect_no_leftovers(by, environment, 8)
                seen.add(now == wanted)
                if now == wanted:
                    self.good(*SMALL, "--seed", 1, "--activation", "relu", "--output", folder, "--overwrite")
                    self.assertEqual(contents(folder), before)
                    self.assertEqual([p.name for p in self.folder.rglob(".gatefold-*")], [])
            self.assertEqual(seen, {False, True})

    def test_a_new_checkpoint_is_there_or_not(self):
        folder = self.folder / "model"
        for by, environment in self.each_way():
            for _ in self.sweep(by, environment, *SMALL, "--output", folder):
                self.assertIn(len(contents(folder)) if folder.exists() else 0, (0, 4))
                self.expect_no_leftovers(by, environment, 8)
                if not folder.exists():
                    continue
                self.good("run", folder, "--tokens", 2, *QUICK)
                self.good(*SMALL, "--output", folder, "--overwrite")  # removes what was left
                self.assertEqual([p.name for p in self.folder.rglob(".gatefold-*")], [])
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()

    def test_a_folder_with_leftovers_is_empty(self):
        folder = self.folder / "model"
        folder.mkdir()
        (folder / ".gatefold-1-0.partial").write_text("half")
        self.good(*SMALL, "--output", folder)
        self.assertEqual(len(contents(folder)), 4)

    def test_a_file_is_the_old_or_the_new(self):
        folder = self.checkpoint("--hidden-size", 16, "--intermediate-size", 24)
        output = self.folder / "tables" / "table.csv"
        output.parent.mkdir()
        for by, environment in self.each_way():
            output.write_text("old")
            for _ in self.sweep(by, environment, "memory", "--format", "csv", "--output", output):
                text = output.read_text()
                self.assertTrue(text == "old" or text.count("\n") > 30, text)
                self.expect_no_leftovers(by, environment, 1)
                output.write_text("old")
            self.good("memory", "--output", output)
            self.assertEqual([p.name for p in output.parent.iterdir()], ["table.csv"])
        self.assertTrue(folder.is_dir())
