#!/usr/bin/env python3
"""Does a model get worse? Trained models in bf16 and fp16, with their own MLP and with Gatefold's, against fp32.

    evaluate.py [WEIGHTS]... [--output FILE]      by default the committed weights of five seeds

The weights are the same numbers in every type (stored in bf16, widened), so what differs is the arithmetic alone. Every
seed's model reads pieces of held-out text of its own, and continues others greedily.
"""

import argparse
import datetime
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import torch
import transformers

import corpus
import gatefold
import gatefold.torch
import model as tiny
import table
from judge import Judge, differing_continuations, paired_errors

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
PROMPT = 64  # bytes that a continuation begins with


def rows_of(path: Path, dtype: str, given: argparse.Namespace) -> list[dict]:
    """fp32's row, stock's, Gatefold's; by one thread, so that the number of cores changes nothing."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    seed, texts = int(path.stem.removeprefix("seed")), corpus.read(held_out=True)
    ids = corpus.windows(texts, given.pieces, tiny.LENGTH, torch.Generator().manual_seed(1000 + seed))  # [pieces, LENGTH]
    prompts = corpus.windows(texts, given.prompts, PROMPT, torch.Generator().manual_seed(2000 + seed))  # [prompts, PROMPT]
    judge = Judge(tiny.load(path, torch.float32), ids, prompts, given.continue_bytes)
    model = tiny.load(path, DTYPES[dtype])
    stock = judge.judge(model)
    report = gatefold.torch.patch(model, strict=True)
    if len(report.changed) != model.config.num_hidden_layers:
        sys.exit(f"evaluate: {model.config.num_hidden_layers} layers, but {report}")
    ours = judge.judge(model)
    rows = [
        {"seed": seed, "dtype": "fp32", "provider": "stock", **judge.fp32.means()},
        {"seed": seed, "dtype": dtype, "provider": "stock", **stock.means()},
        {"seed": seed, "dtype": dtype, "provider": "gatefold", **ours.means(),
         "paired_error": paired_errors(ours, stock, judge.fp32),
         "differing_continuations": differing_continuations(ours, stock)},
    ]  # fmt: skip
    for row in rows:
        row["loss_distance"] = abs(row["loss"] - rows[0]["loss"])
    print(f"{path.stem} {dtype}: loss {rows[0]['loss']:.4f}", file=sys.stderr, flush=True)
    return rows


def all_rows(files: list[Path], given: argparse.Namespace) -> list[dict]:
    """Seed by seed: fp32, then each type's stock and Gatefold. fp16 first, which takes longest where a CPU lacks it."""
    tasks = [(path, dtype, given) for dtype in ("fp16", "bf16") for path in files]
    if given.jobs == 1:
        found = list(itertools.starmap(rows_of, tasks))
    else:
        with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
            found = pool.starmap(rows_of, tasks, chunksize=1)
    fp16, bf16 = found[: len(files)], found[len(files) :]
    return [row for a, b in zip(bf16, fp16) for row in a + b[1:]]


def context(given: argparse.Namespace) -> dict:
    texts = corpus.read(held_out=True)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True,
                            capture_output=True).stdout.strip()  # fmt: skip
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    return {
        "gpu": None, "cpu": cpu, "processes": given.jobs, "version": gatefold.__version__,
        "torch": torch.__version__, "transformers": transformers.__version__, "commit": commit,
        "command": " ".join(["examples/tiny_llama/evaluate.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "held_out_bytes": {kind: len(text) for kind, text in texts.items()},
        "pieces": given.pieces, "piece_bytes": tiny.LENGTH, "prompts": given.prompts, "prompt_bytes": PROMPT,
        "continued_bytes": given.continue_bytes,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="*", help="seedN.safetensors, or a folder of them")
    parser.add_argument("--pieces", type=int, default=600, help="of text, for each seed")
    parser.add_argument("--prompts", type=int, default=1200, help="for each seed, to be continued")
    parser.add_argument("--continue-bytes", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes of one thread")
    parser.add_argument("--output", type=Path, help="receives a row for each seed, type and MLP as JSON")
    given = parser.parse_args()
    files = []
    for path in given.weights or [tiny.COMMITTED]:
        files += tiny.weight_files(path) if path.is_dir() else [path]
    rows = all_rows(files, given)
    if given.output:
        given.output.write_text(json.dumps({"context": context(given), "rows": rows}, indent=1) + "\n")
    print(table.markdown(rows))


if __name__ == "__main__":
    main()
