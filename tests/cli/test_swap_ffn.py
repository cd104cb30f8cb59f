"""gatefold swap-ffn: init, run, verify, bench and trace."""

import os
import random
from pathlib import Path

from support import QUICK, ToolTest, floats, read_safetensors, run_tool, write_safetensors
from swap_ffn_definition import Definition

B, D, F, C, E, R, K, RC = 2, 12, 20, 5, 3, 7, 2, 6
SIZES = ("--hidden-size", D, "--intermediate-size", F, "--cores", C, "--core-embed-size", E, "--router-width", R,
         "--collapse-heads", K, "--collapse-width", RC)
EVENTS = ("--events", 3, "--k-ffn", 2)
INITIAL_MAP = 0b11100100
SHAPES = {
    "core_embed": [C, E], "scale_w": [D, E], "scale_b": [D], "shift_w": [D, E], "shift_b": [D], "alpha_w": [K, E],
    "alpha_b": [K], "router_norm": [D], "router_w": [R, D], "router_swap_w": [R], "router_swap_b": [1],
    "bank_w": [R, 4], "bank_b": [4], "ffn_norm": [D], "gate_w": [F, D], "up_w": [F, D], "down_w": [D, F],
    "basis": [K, RC, D], "decoder": [D, RC],
}


class SwapFfn(ToolTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("GATEFOLD_TEST_SEED") or random.randrange(2**32))
        print(f"GATEFOLD_TEST_SEED={self.seed} repeats this run", flush=True)

    def files(self, *arguments, name="", batch=B, seed=None):
        paths = {what: self.folder / f"{name}{what}.safetensors" for what in ("weights", "state", "input")}
        given = [part for what, path in paths.items() for part in (f"--{what}", path)]
        seed = self.seed if seed is None else seed
        self.good("swap-ffn", "init", *given, *SIZES, "--batch", batch, "--seed", seed, *arguments)
        return paths

    @staticmethod
    def options(paths):
        return [part for what, path in paths.items() for part in (f"--{what}", path)]

    def run_steps(self, paths, *arguments, output="output"):
        path = self.folder / f"{output}.safetensors"
        self.good("swap-ffn", "run", *self.options(paths), "--output", path, *EVENTS, *arguments)
        return read_safetensors(path)


class Files(SwapFfn):
    def test_init_writes_the_tensors_by_name(self):
        paths = self.files("--dtype", "fp32")
        shapes = {name: shape for name, (_, shape, _) in read_safetensors(paths["weights"]).items()}
        self.assertEqual(shapes, SHAPES)
        state = read_safetensors(paths["state"])
        self.assertEqual(state["ram"][:2], ("F32", [B, C, 4, D]))
        self.assertEqual(state["stream_map"], ("U8", [B, C], bytes([INITIAL_MAP] * B * C)))
        self.assertEqual(read_safetensors(paths["input"])["x"][:2], ("F32", [B, D]))

    def test_a_seed_repeats_them(self):
        first, again, other = (self.files(name=name, seed=seed) for name, seed in (("a", 7), ("b", 7), ("c", 8)))
        for what, path in first.items():
            self.assertEqual(path.read_bytes(), again[what].read_bytes(), what)
            self.assertNotEqual(path.read_bytes(), other[what].read_bytes(), what)

    def test_run_computes_the_definition(self):
        """Two steps, in fp32, of 14 products that follow one another: rounding leaves each sum right to some 2^-22, and an
        MLP may make several times as much of it. So decisions must agree if all have a margin of 1e-3, other data are drawn
        anew; and 1e-3 of the largest value is far below what a tensor in another's place does."""
        for seed in range(self.seed, self.seed + 100):
            paths = self.files("--dtype", "fp32", seed=seed)
            definition = Definition(*(read_safetensors(paths[what]) for what in ("weights", "state", "input")))
            definition.step(3, 2)
            delta = definition.step(3, 2)
            if definition.margin >= 1e-3:
                break
        got = self.run_steps(paths, "--steps", 2)
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in got.items()},
                         {"delta": ("F32", [B, D]), "ram": ("F32", [B, C, 4, D]), "stream_map": ("U8", [B, C])})
        lanes = [sum(lane << 2 * i for i, lane in enumerate(row)) for rows in definition.map for row in rows]
        self.assertEqual(list(got["stream_map"][2]), lanes)
        flat = [v for b in definition.ram for c in b for bank in c for v in bank]
        for name, truth in (("delta", [v for row in delta for v in row]), ("ram", flat)):
            largest = max(map(abs, truth))
            self.assertLess(max(abs(a - b) for a, b in zip(floats(got[name][2]), truth)), 1e-3 * largest, name)

    def test_steps_follow_one_another(self):
        """Two steps are one from where one ended."""
        paths = self.files()
        at_once = self.run_steps(paths, "--steps", 2)
        first = self.run_steps(paths, output="first")
        self.assertNotEqual(first["delta"], at_once["delta"])
        second = self.run_steps({**paths, "state": self.folder / "first.safetensors"}, output="second")
        self.assertEqual(second, at_once)

    def test_dtype_converts(self):
        paths = self.files("--dtype", "bf16")
        got = self.run_steps(paths, "--dtype", "fp32")
        # bf16 is the upper half of fp32: as files of fp32, the same numbers give the same bits.
        for path in paths.values():
            tensors = {name: tensor if tensor[0] == "U8" else ("F32", tensor[1], self.widened(tensor[2]))
                       for name, tensor in read_safetensors(path).items()}
            write_safetensors(path, tensors)
        self.assertEqual(self.run_steps(paths), got)

    @staticmethod
    def widened(raw):
        return b"".join(b"\0\0" + raw[i : i + 2] for i in range(0, len(raw), 2))

    def test_no_sequences(self):
        paths = self.files()
        write_safetensors(paths["input"], {"x": ("BF16", [0, D], b"")})
        write_safetensors(paths["state"], {"ram": ("BF16", [0, C, 4, D], b""), "stream_map": ("U8", [0, C], b"")})
        self.assertEqual(self.run_steps(paths)["delta"], ("BF16", [0, D], b""))

    def test_the_table(self):
        paths = self.files()
        table = self.table("swap-ffn", "run", *self.options(paths), *EVENTS, "--steps", 3, "--output", self.folder / "o")
        (row,) = table["rows"]
        sizes = {"batch": B, "hidden_size": D, "intermediate_size": F, "cores": C, "events": 3, "k_ffn": 2}
        self.assertEqual({key: row[key] for key in sizes}, sizes)
        self.assertEqual((row["op"], row["dtype"], row["steps"]), ("swap_ffn", "bf16", 3))
        self.assertAlmostEqual(row["tokens_per_second"] * row["time_us"], B * 1e6, delta=1)


class Verify(SwapFfn):
    def test_nothing_is_wrong(self):
        for dtype in ("bf16", "fp16", "fp32"):
            rows = self.table("swap-ffn", "verify", *SIZES, *EVENTS, "--batch", B, "--steps", 2, "--dtype", dtype,
                              "--seed", self.seed)["rows"]
            self.assertEqual([row["step"] for row in rows], [1, 2])
            for row in rows:
                self.assertEqual((row["dtype"], row["decisions"]), (dtype, 2 * 3 * B * C))
                self.assertEqual((row["wrong_decisions"], row["wrong_moves"], row["violations"]), (0, 0, 0))
                self.assertLessEqual(row["max_bound_ratio"], 1)
                self.assertTrue(0 <= row["cores_on_another_path"] <= B * C)

    def test_files(self):
        """The files' data, type and sizes; --dtype converts. The same data drawn give the same rows."""
        paths = self.files("--dtype", "fp16")
        arguments = (*EVENTS, "--steps", 1)
        rows = self.table("swap-ffn", "verify", *self.options(paths), *arguments)["rows"]
        drawn = self.table("swap-ffn", "verify", *SIZES, "--batch", B, "--seed", self.seed, "--dtype", "fp16",
                           *arguments)["rows"]
        self.assertEqual(rows, drawn)
        rows = self.table("swap-ffn", "verify", *self.options(paths), *arguments, "--dtype", "bf16")["rows"]
        self.assertEqual((rows[0]["dtype"], rows[0]["cores"]), ("bf16", C))

    def test_events_only(self):
        rows = self.table("swap-ffn", "verify", *SIZES, *EVENTS, "--steps", 1, "--events-only")["rows"]
        self.assertIsNone(rows[0]["cores_on_another_path"])


class Times(SwapFfn):
    def test_bench(self):
        table = self.table("swap-ffn", "bench", *SIZES, *EVENTS, "--batches", "1,3", "--dtype", "fp32", *QUICK)
        self.assertGreater(table["context"]["threads"], 0)
        rows = {(row["batch"], row["provider"]): row for row in table["rows"]}
        self.assertEqual(list(rows), [(b, p) for b in (1, 3) for p in ("gatefold", "unfused", "gemm")])
        for (batch, provider), row in rows.items():
            self.assertEqual((row["op"], row["hidden_size"], row["cores"]), ("swap_ffn", D, C))
            self.assertLessEqual(row["time_us_p10"], row["time_us_p90"])
            self.assertAlmostEqual(row["tokens_per_second"] * row["time_us"], batch * 1e6, delta=1)
            for name in ("unfused", "gemm"):  # of one round
                self.assertAlmostEqual(row[f"ratio_vs_{name}"], rows[batch, name]["time_us"] / row["time_us"])
            # Both compute the same thing, in fp32, on data that are always the same and near no threshold: see
            # test_run_computes_the_definition.
            if provider == "gatefold":
                self.assertLess(row["relative_l2_to_unfused"], 1e-3)

    def test_a_profile_of_nsight_compute_is_of_a_gpu(self):
        fixture = Path(__file__).parent / "fixtures" / "ncu_two_steps.csv"
        self.bad("swap-ffn", "trace", *SIZES, "--ncu", fixture, words=["--ncu: kernels of cuda, but --device is cpu"])
        self.bad("swap-ffn", "trace", *SIZES, "--ncu", self.folder / "none.csv", words=["none.csv: cannot be opened"])
        copy = self.folder / "copy.csv"
        copy.write_bytes(fixture.read_bytes())
        self.bad("swap-ffn", "trace", *SIZES, "--ncu", copy, "--output", copy, words=["--output", "--ncu"])
        self.assertEqual(copy.read_bytes(), fixture.read_bytes())

    def test_trace(self):
        table = self.table("swap-ffn", "trace", *SIZES, *EVENTS, "--batch", B, "--steps", 2)
        for path in ("fused", "unfused"):
            rows = [row for row in table["rows"] if row["path"] == path]
            passes, total = rows[:-1], rows[-1]
            self.assertEqual(total["pass"], "total")
            for key in ("launches", "gflop", "bytes"):
                self.assertAlmostEqual(sum(row[key] for row in passes), total[key], msg=key)
            self.assertAlmostEqual(total["share"], 1)
            # In the order in which they run, and as often as the events and their MLPs.
            names = [row["pass"] for row in passes]
            launches = {row["pass"]: row["launches"] for row in passes}
            products = {row["pass"]: row["gflop"] for row in passes}
            down = 2 * B * C * D * F * 6 * 1e-9
            if path == "fused":
                self.assertEqual((names[0], names[-1]), ("start", "collapse: gemm, silu, gemm"))
                self.assertEqual((launches["router: gemm"], launches["gate_up, 1/rms, silu"]), (3, 6))
                self.assertAlmostEqual(products["gate_up, 1/rms, silu"], 2 * down)
                self.assertAlmostEqual(products["down: gemm"], down)
            else:
                self.assertEqual((names[0], names[-1]), ("start", "gemm decoder"))
                self.assertEqual((launches["gemm router"], launches["gemm up"], launches["argmax"]), (3, 6, 3))
                for name in ("gemm gate", "gemm up", "gemm down"):
                    self.assertAlmostEqual(products[name], down)
        fused, unfused = (next(row for row in table["rows"] if (row["path"], row["pass"]) == (path, "total"))
                          for path in ("fused", "unfused"))
        self.assertLess(fused["launches"], unfused["launches"])
        self.assertLess(fused["bytes"], unfused["bytes"])


class BadInput(SwapFfn):
    def bad_run(self, paths, *arguments, words=()):
        output = self.folder / "never.safetensors"
        self.bad("swap-ffn", "run", *self.options(paths), "--output", output, *arguments, words=words)
        self.assertFalse(output.exists())

    def changed(self, paths, what, name, tensor):
        """paths, with another tensor in one of the files; None takes it out."""
        path = self.folder / "changed.safetensors"
        tensors = read_safetensors(paths[what])
        tensors[name] = tensor
        write_safetensors(path, {name: tensor for name, tensor in tensors.items() if tensor})
        return {**paths, what: path}

    def test_tensors(self):
        paths = self.files()
        for name in SHAPES:
            self.bad_run(self.changed(paths, "weights", name, None), words=["changed.safetensors", name])
        for what, name, shape in (
            ("weights", "gate_w", [F * D]), ("weights", "basis", [K * RC, D]), ("weights", "up_w", [F, D, 1]),
            ("weights", "up_w", [D, F]), ("weights", "alpha_b", [2, 1]), ("state", "ram", [B, C * 4, D]),
            ("state", "ram", [B, 4, C, D]), ("state", "stream_map", [C, B]), ("input", "x", [B * D]),
            ("input", "x", [1, B * D]),
        ):
            dtype, _, raw = read_safetensors(paths[what])[name]
            self.bad_run(self.changed(paths, what, name, (dtype, shape, raw)),
                         words=["changed.safetensors", name, ", ".join(map(str, shape)), "expected"])

    def test_types(self):
        paths = self.files()
        for what, name in (("weights", "gate_w"), ("weights", "down_w"), ("state", "ram"), ("input", "x")):
            dtype, shape, raw = read_safetensors(paths[what])[name]
            self.bad_run(self.changed(paths, what, name, ("I16", shape, raw)), words=[name, "I16"])
            if name != "gate_w":
                self.bad_run(self.changed(paths, what, name, ("F16", shape, raw)), words=[name, "F16", "bf16"])
        dtype, shape, raw = read_safetensors(paths["state"])["stream_map"]
        self.bad_run(self.changed(paths, "state", "stream_map", ("I8", shape, raw)), words=["stream_map", "I8", "U8"])

    def test_a_map_that_is_no_permutation(self):
        paths = self.files()
        maps = bytearray([INITIAL_MAP] * B * C)
        maps[7] = 0b11100101  # 1 twice, 0 nowhere
        self.bad_run(self.changed(paths, "state", "stream_map", ("U8", [B, C], bytes(maps))),
                     words=["stream_map", "7", "1"])

    def test_batches_that_differ(self):
        paths = self.files()
        other = self.files(name="other", batch=3)
        self.bad_run({**paths, "input": other["input"]}, words=["ram", f"[{B}, {C}, 4, {D}]", f"[3, {C}, 4, {D}]"])

    def test_files(self):
        paths = self.files()
        self.bad_run({**paths, "state": self.folder / "nowhere"}, words=["nowhere"])
        for what, path in paths.items():
            before = path.read_bytes()
            self.bad("swap-ffn", "run", *self.options(paths), "--output", path, words=["--output", f"--{what}"])
            self.bad("swap-ffn", "run", *self.options(paths), "--output", self.folder / "o", "--table", path,
                     words=["--table", f"--{what}"])
            self.bad("swap-ffn", "verify", *self.options(paths), "--output", path, words=["--output", f"--{what}"])
            self.assertEqual(path.read_bytes(), before)
        for table in (("--table", self.folder / "o"), ("--table", "-")):
            self.bad("swap-ffn", "run", *self.options(paths), "--output", table[1], *table, words=["same file"])
        self.bad("swap-ffn", "run", *self.options(paths), "--output", "-", words=["same file"])
        self.bad("swap-ffn", "run", *self.options(paths), "--output", self.folder / "none" / "o", words=["--output"])
        self.bad("swap-ffn", "init", *self.options({**paths, "state": paths["weights"]}), *SIZES,
                 words=["--state", "--weights"])
        self.bad("swap-ffn", "verify", "--weights", paths["weights"], words=["--weights", "1 of 3"])
        self.bad("swap-ffn", "verify", *self.options(paths), "--cores", C, words=["--cores", "--weights"])

    def test_values(self):
        paths = self.files()
        self.bad_run(paths, "--steps", 0, words=["--steps", "0", "1"])
        self.bad_run(paths, "--events", 0, words=["events", "0"])
        self.bad_run(paths, "--k-ffn", -1, words=["k_ffn", "-1"])
        self.bad_run(paths, "--eps", 0, words=["eps", "0"])
        self.bad_run(paths, "--dtype", "fp8", words=["fp8", "bf16"])
        self.bad_run(paths, "--device", "cuda", words=["--device", "cuda", "cpu"])
        self.bad_run(paths, "--device", "tpu", words=["--device", "tpu", "cpu"])
        for command in ("verify", "bench", "trace"):
            self.bad("swap-ffn", command, "--device", "cuda", words=["--device", "cuda", "cpu"])
            self.bad("swap-ffn", command, "--impl", "other", words=["--impl", "other", "fused"])
            self.bad("swap-ffn", command, "--impl", "fused", words=["implementation", "fused", "on cpu"])
            self.bad("swap-ffn", command, "--cores", 0, words=["cores", "0"])
            self.bad("swap-ffn", command, "--hidden-size", 2**45, words=[2**45, "overflow"])
            self.bad("swap-ffn", command, "--format", "xml", words=["xml"])
        self.bad("swap-ffn", "bench", "--batches", "2,0", words=["--batches", "0"])
        self.bad("swap-ffn", "bench", "--batches", f"1,{2**60}", words=[2**60, "overflow"])
        self.bad("swap-ffn", "verify", "--batch", 2**60, words=[2**60, "overflow"])
        self.bad("swap-ffn", "trace", "--steps", "0x2", words=["--steps", "0x2"])
        self.bad("swap-ffn", words=["subcommand"])
        self.bad("swap-ffn", "dance")
