#!/usr/bin/env python3
"""Does a model get worse? Trained models in bf16 and fp16, with their own MLP and with Gatefold's, against fp32.

    evaluate.py [WEIGHTS]... [--output FILE]      by default the committed weights of five seeds

The weights are the same numbers in every type (stored in bf16, widened), so what differs is the arithmetic alone. Every
seed's model reads pieces of held-out text of its own, and continues some of them greedily.
"""

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from torch import Tensor

import corpus
import gatefold
import gatefold.torch
import model as tiny
import table

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
PROMPT = 64  # bytes of a piece that a continuation begins with


def log_probabilities(model: torch.nn.Module, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """In batches: of every next byte [B, LENGTH - 1, 256] in double precision, and which it is [B, LENGTH - 1]."""
    for batch in ids.split(16):
        logits = model(batch, use_cache=False).logits[:, :-1]
        yield torch.log_softmax(logits.double(), -1), batch[:, 1:]


def continuations(model: torch.nn.Module, prompts: Tensor, length: int) -> Tensor:
    """The likeliest next byte again and again. prompts [P, PROMPT] -> [P, length]"""
    cache, ids, written = None, prompts, []
    for _ in range(length):
        result = model(ids, past_key_values=cache, use_cache=True)
        cache, ids = result.past_key_values, result.logits[:, -1:].argmax(-1)
        written.append(ids)
    return torch.cat(written, 1)


def share_before_difference(a: Tensor, b: Tensor) -> float:
    """Of the bytes of continuations [P, L], those before the first in which the two differ."""
    return (a == b).long().cumprod(1).double().mean().item()


class Judge:
    """What the fp32 model says of some text, and how far another is from it."""

    def __init__(self, model: torch.nn.Module, ids: Tensor, prompts: Tensor, length: int) -> None:
        self.ids, self.prompts, self.length = ids, prompts, length
        self.expected = [log for log, _ in log_probabilities(model, ids)]
        self.written = continuations(model, prompts, length)
        self.of_itself = self.judge(model)

    def judge(self, model: torch.nn.Module) -> dict[str, float]:
        loss = right = agrees = divergence = 0.0
        count = 0
        for expected, (log, following) in zip(self.expected, log_probabilities(model, self.ids)):
            loss -= log.gather(-1, following[..., None]).sum().item()
            right += (log.argmax(-1) == following).sum().item()
            agrees += (log.argmax(-1) == expected.argmax(-1)).sum().item()
            divergence += (expected.exp() * (expected - log)).sum().item()
            count += following.numel()
        return {
            "loss": loss / count, "accuracy": right / count, "greedy_agreement": agrees / count,
            "divergence": divergence / count,
            "continuation_agreement": share_before_difference(self.written, continuations(model, self.prompts, self.length)),
        }  # fmt: skip


def rows_of(path: Path, texts: dict[str, Tensor], given: argparse.Namespace) -> list[dict]:
    seed = int(path.stem.removeprefix("seed"))
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = corpus.windows(texts, given.pieces, tiny.LENGTH, generator)  # [pieces, LENGTH]
    judge = Judge(tiny.load(path, torch.float32), ids, ids[: given.prompts, :PROMPT], given.continue_bytes)
    rows = [{"seed": seed, "dtype": "fp32", "provider": "stock", **judge.of_itself}]
    for name, dtype in DTYPES.items():
        model = tiny.load(path, dtype)
        rows.append({"seed": seed, "dtype": name, "provider": "stock", **judge.judge(model)})
        report = gatefold.torch.patch(model, strict=True)
        if len(report.changed) != model.config.num_hidden_layers:
            sys.exit(f"evaluate: {model.config.num_hidden_layers} layers, but {report}")
        rows.append({"seed": seed, "dtype": name, "provider": "gatefold", **judge.judge(model)})
    for row in rows:
        row["loss_distance"] = abs(row["loss"] - rows[0]["loss"])
    return rows


def context(given: argparse.Namespace, texts: dict[str, Tensor]) -> dict:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True,
                            capture_output=True).stdout.strip()  # fmt: skip
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    return {
        "gpu": None, "cpu": cpu, "threads": torch.get_num_threads(), "version": gatefold.__version__,
        "torch": torch.__version__, "transformers": transformers.__version__, "commit": commit,
        "command": " ".join(["examples/tiny_llama/evaluate.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "held_out_bytes": {kind: len(text) for kind, text in texts.items()},
        "pieces": given.pieces, "piece_bytes": tiny.LENGTH, "prompts": given.prompts, "prompt_bytes": PROMPT,
        "continued_bytes": given.continue_bytes,
    }  # fmt: skip


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="*", help="seedN.safetensors, or a folder of them")
    parser.add_argument("--pieces", type=int, default=600, help="of text, for each seed")
    parser.add_argument("--prompts", type=int, default=240, help="of the pieces, to be continued")
    parser.add_argument("--continue-bytes", type=int, default=64)
    parser.add_argument("--output", type=Path, help="receives a row for each seed, type and MLP as JSON")
    given = parser.parse_args()
    files = []
    for path in given.weights or [tiny.COMMITTED]:
        files += tiny.weight_files(path) if path.is_dir() else [path]
    texts = corpus.read(held_out=True)
    rows, start = [], time.monotonic()
    for path in files:
        rows += rows_of(path, texts, given)
        print(f"{path.stem}: loss {rows[-5]['loss']:.4f}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    if given.output:
        given.output.write_text(json.dumps({"context": context(given, texts), "rows": rows}, indent=1) + "\n")
    print(table.markdown(rows))


if __name__ == "__main__":
    main()
