"""Where results go: files, links, devices, pipes, stdout; and what happens where they can't go there."""

import os
import stat
import subprocess

from support import QUICK, TOOL, ToolTest, read_safetensors, write_safetensors


def run_in_shell(command, *arguments):
    """The tool with redirections that only a shell can make."""
    quoted = " ".join(f"'{a}'" for a in map(str, (TOOL, *arguments)))
    return subprocess.run(["bash", "-c", f"{quoted} {command}"], capture_output=True, text=True, timeout=240)


class Destinations(ToolTest):
    def setUp(self):
        super().setUp()
        self.model = self.checkpoint("--hidden-size", 16, "--intermediate-size", 24)
        self.run_model = ("run", self.model, "--tokens", 2, "--device", "cpu", *QUICK)

    def device(self, name, minor):
        """A device of our own, where we may make one: the test must not be able to harm this machine's."""
        file = self.folder / name
        try:
            os.mknod(file, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        except PermissionError:
            self.skipTest("only root may make a device")
        return file

    def test_a_device_is_written_to(self):
        null = self.device("null", 3)
        self.good("memory", "--output", null)
        self.assertIn("gate_up", self.good(*self.run_model, "--output", null))
        self.assertTrue(stat.S_ISCHR(null.stat().st_mode))

    def test_a_device_is_full(self):
        full = self.device("full", 7)
        self.bad("memory", "--output", full, words=[full, "No space left"])
        self.assertTrue(stat.S_ISCHR(full.stat().st_mode))

    def test_a_pipe_is_written_to(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["timeout", "60", "cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.good("memory", "--format", "csv", "--output", pipe)
            self.assertEqual(reader.communicate()[0], self.good("memory", "--format", "csv"))
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_a_links_target_is_replaced(self):
        target, link = self.folder / "target", self.folder / "link"
        target.write_text("old")
        link.symlink_to("target")
        self.good("memory", "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertIn("llama3.1-8b", target.read_text())

    def test_dash_is_stdout(self):
        self.assertEqual(self.good("memory", "--output", "-"), self.good("memory"))
        report = self.folder / "report.md"
        done = subprocess.run([TOOL, *map(str, self.run_model), "--output", "-", "--report", str(report)],
                              capture_output=True, timeout=240, cwd=self.folder)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        (self.folder / "y").write_bytes(done.stdout)
        self.assertEqual(read_safetensors(self.folder / "y")["y"][1], [2, 16])
        self.assertIn("gate_up", report.read_text())
        self.assertFalse((self.folder / "-").exists())
        self.bad("checkpoint", "--hidden-size", 16, "--intermediate-size", 24, "--output", "-", words=["folder"])

    def test_one_file_for_two_things(self):
        self.bad(*self.run_model, "--output", "-", words=["--output", "same file"])
        both, link, hard = (self.folder / name for name in ("both", "link", "hard"))
        link.symlink_to("both")
        for other in (both, link, self.model / ".." / "both"):
            self.bad(*self.run_model, "--output", both, "--report", other, words=["same file", both, other])
        both.write_text("old")
        hard.hardlink_to(both)
        for other in (link, hard):
            self.bad(*self.run_model, "--output", both, "--report", other, words=["same file"])
        self.assertEqual(both.read_text(), "old")
        done = run_in_shell(f">> '{both}'", *self.run_model, "--output", both)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(both.read_text(), "old")

    def test_what_is_read_is_not_written(self):
        weights = self.model / "model.safetensors"
        x, link, hard = (self.folder / name for name in ("x", "link", "hard"))
        write_safetensors(x, {"x": ("BF16", [2, 16], bytes(64))})
        link.symlink_to(weights)
        hard.hardlink_to(weights)
        before = {file: file.read_bytes() for file in (weights, x, self.model / "config.json")}
        for option in ("--output", "--report"):
            for file in (weights, link, hard, self.model / "config.json"):
                self.bad(*self.run_model, option, file, words=[option, file, "checkpoint"])
            self.bad("run", self.model, "--input", x, option, x, *QUICK, words=[option, "--input"])
        for file, data in before.items():
            self.assertEqual(file.read_bytes(), data)

    def test_every_shard_counts(self):
        sharded = self.checkpoint("--hidden-size", 16, "--intermediate-size", 24, "--layers", 2, "--sharded", name="s")
        for name in ("model-00002-of-00002.safetensors", "model.safetensors.index.json"):
            self.bad("run", sharded, "--tokens", 2, "--output", sharded / name, *QUICK, words=[name, "checkpoint"])
        self.good("run", sharded, "--tokens", 2, "--output", sharded / "y", *QUICK)


class Failing(ToolTest):
    """A stream that takes nothing."""

    TABLES = (("memory",), ("info",), ("memory", "--format", "json"), ("--help",), ("run", "--help"), ("--version",))

    def test_stdout_is_full(self):
        for arguments in self.TABLES:
            done = run_in_shell("> /dev/full", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr, r"\Agatefold: stdout: cannot write: No space left[^\n]*\n\Z")

    def test_stdout_is_closed(self):
        for arguments in self.TABLES:
            done = run_in_shell(">&-", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr, r"\Agatefold: stdout: cannot write: [^\n]*\n\Z")

    def test_checkpoints_say_so_too(self):
        done = run_in_shell("> /dev/full", "checkpoint", "--hidden-size", 16, "--intermediate-size", 24, "--output",
                            self.folder / "model")  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("stdout", done.stderr)

    def test_stderr_fails(self):
        for where in ("2>&-", "2> /dev/full", ">&- 2>&-", "<&- >&- 2>&-"):
            self.assertEqual(run_in_shell(where, "memory", "--chunk", 0).returncode, 2, where)
            self.assertEqual(run_in_shell(where, "dance").returncode, 2, where)
        self.assertEqual(run_in_shell("2>&-", "memory").returncode, 0)

    def test_an_output_does_not_receive_what_is_printed(self):
        # A closed stdout's number would go to the next file that is opened.
        model = self.checkpoint("--hidden-size", 16, "--intermediate-size", 24)
        output = self.folder / "y"
        done = run_in_shell("<&- >&- 2>&-", "run", model, "--tokens", 2, "--output", output, *QUICK)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(set(read_safetensors(output)), {"h", "y"})
