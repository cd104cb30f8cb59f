"""The benchmarks that need PyTorch run, small, on a CPU; their figures are no assertions."""

import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TINY = ["--device", "cpu", "--layers", "2", "--hidden-size", "64", "--intermediate-size", "96", "--heads", "4",
        "--kv-heads", "2", "--vocabulary", "64", "--rounds", "2", "--round-ms", "2"]  # fmt: skip


def test_llama_shaped_measures_every_phase_of_every_way(tmp_path):
    output = tmp_path / "out.json"
    command = [sys.executable, str(ROOT / "bench" / "llama_shaped.py"), *TINY, "--ways", "stock/patched", "--dtype", "fp32",
               "--prefill", "2x9", "--decode", "3x8", "--output", str(output)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert [(row["phase"], row["batch"], row["tokens"], row["provider"]) for row in rows] == [
        ("prefill", 2, 9, "stock"), ("prefill", 2, 9, "patched"), ("decode", 3, 8, "stock"), ("decode", 3, 8, "patched"),
    ]  # fmt: skip
    for row in rows:
        produced = row["batch"] * (row["tokens"] if row["phase"] == "prefill" else 1)
        assert math.isclose(row["tokens_per_second"], produced / row["time_us"] * 1e6, rel_tol=1e-2)
        # fp32: both ways' sums differ by roundings of 2^-24, of which no more than some hundred add up here.
        assert row["relative_l2_to_stock"] == 0 if row["provider"] == "stock" else row["relative_l2_to_stock"] < 1e-5



def test_torch_parallel_measures_every_form_and_names_what_it_cannot(tmp_path):
    output = tmp_path / "out.json"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(ROOT / "bench" / "torch_parallel.py"),
               "--device", "cpu", "--hidden-size", "64", "--intermediate-size", "96", "--tokens", "1", "6", "--rounds", "2",
               "--round-ms", "2", "--output", str(output)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    measured = {(row["tokens"], row["form"], row["way"]) for row in rows if "time_us" in row}
    whole = {(tokens, "whole", way) for tokens in (1, 6) for way in ("one", "part", "parallelize", "functional")}
    assert measured == whole | {(6, "sequence", "parallelize")}  # one token has no parts
    symmetric = {row["way"]: row["refused"] for row in rows if "refused" in row}
    assert set(symmetric) == {"one_shot", "two_shot", "async_tp", "async_gate_up"}, symmetric


def test_torch_call_cost_measures_every_call(tmp_path):
    output = tmp_path / "out.json"
    command = [sys.executable, str(ROOT / "bench" / "torch_call_cost.py"), "--rounds", "2", "--json", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    modes = [row["mode"] for row in rows if row["call"] == "gate_up"]
    assert modes == ["inference_mode", "no_grad", "no gradient needed", "with gradients"]
    assert all(0 < row["time_us"] < 1e4 for row in rows)
