#!/usr/bin/env python3
"""A whole Llama-shaped model with random weights: prefill, decoding in CUDA graphs, and memory.

    bench/llama_shaped.py --output FILE                                    # some layers of Llama 3.1 8B's sizes, on a GPU
    bench/llama_shaped.py --device cpu --layers 2 --hidden-size 256 ...    # anything small, without graphs

Ways: the model as Transformers has it (stock), by torch.compile (compiled), after gatefold.torch.patch (patched), and
both. All share one set of weights and alternate in one process; a figure is the median of rounds, a ratio that of the
rounds' ratios. Prefill: [batch, tokens] at once, without writing a cache, logits of the last token. Decoding: one token
of each sequence after `tokens` in a static cache, attention over all of it. Memory: torch's peak in one call, and what
of it is beside weights and cache. A way that fails is named and left out.
"""

import argparse
import copy
import datetime
import json
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import gatefold
import gatefold.torch

WAYS = ("stock", "compiled", "patched", "patched, compiled")
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SLACK = 256  # tokens that fit into a cache beside the context: a round decodes no more


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--layers", type=int, default=4, help="of 32 in Llama 3.1 8B; all are alike")
    parser.add_argument("--hidden-size", type=int, default=4096)
    parser.add_argument("--intermediate-size", type=int, default=14336)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=128256)
    parser.add_argument("--prefill", default="1x512,1x4096", help="BATCHxTOKENS,...")
    parser.add_argument("--decode", default="1x1024,32x1024", help="BATCHxCONTEXT,...")
    parser.add_argument("--ways", default="/".join(WAYS), help="separated by /")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-ms", type=float, default=60)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.ways = given.ways.split("/")
    if unknown := set(given.ways) - set(WAYS):
        parser.error(f"--ways: {', '.join(sorted(unknown))}: none of {', '.join(WAYS)}")
    if given.ways[:1] != ["stock"]:
        parser.error("--ways: begins with stock, which the ratios are to")
    return given


def build(given: argparse.Namespace) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=given.vocabulary, hidden_size=given.hidden_size, intermediate_size=given.intermediate_size,
        num_hidden_layers=given.layers, num_attention_heads=given.heads, num_key_value_heads=given.kv_heads,
        max_position_embeddings=131072, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        tie_word_embeddings=False, attn_implementation="sdpa", bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    torch.set_default_dtype(DTYPES[given.dtype])
    with torch.device(given.device):
        model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    return model


def ways_of(model: LlamaForCausalLM, wanted: list[str]) -> dict[str, Callable]:
    """Each way's forward; the copies hold the same weights."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    patched = copy.deepcopy(model, dict(shared))
    report = gatefold.torch.patch(patched, strict=True)
    if len(report.changed) != model.config.num_hidden_layers:
        sys.exit(f"llama_shaped: {model.config.num_hidden_layers} layers, but {report}")
    forwards = {"stock": model, "patched": patched}
    for name, eager in list(forwards.items()):
        forwards["compiled" if name == "stock" else "patched, compiled"] = torch.compile(eager, dynamic=False)
    return {name: forwards[name] for name in WAYS if name in wanted}


@dataclass
class Call:
    """What is timed: one prefill, or one decoded token of each sequence."""

    run: Callable[[], object]
    logits: Callable[[], torch.Tensor]
    begin_round: Callable[[], None]
    most_calls: int  # a round's
    peak_bytes: int | None = None
    activation_bytes: int | None = None


def measure_memory(call: Call, device: str) -> None:
    if device != "cuda":
        return
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call.run()
    torch.cuda.synchronize()
    call.peak_bytes = torch.cuda.max_memory_allocated()
    call.activation_bytes = call.peak_bytes - before


def prefill(forward: Callable, ids: torch.Tensor, device: str) -> Call:
    def run() -> torch.Tensor:
        return forward(input_ids=ids, use_cache=False, logits_to_keep=1).logits

    run()  # compiles
    call = Call(run, logits=run, begin_round=lambda: None, most_calls=1 << 30)
    measure_memory(call, device)
    return call


def decode(forward: Callable, model: LlamaForCausalLM, ids: torch.Tensor, context: int, device: str) -> Call:
    """On a GPU the step is captured into a graph. ids: [batch, 1]"""
    cache = StaticCache(config=model.config, max_cache_len=context + SLACK)
    config = model.config
    head = config.hidden_size // config.num_attention_heads
    cache.early_initialization(ids.shape[0], config.num_key_value_heads, head, model.dtype, ids.device)
    generator = torch.Generator(ids.device).manual_seed(2)
    for layer in cache.layers:
        layer.keys.normal_(generator=generator)
        layer.values.normal_(generator=generator)

    def begin_round() -> None:
        for layer in cache.layers:
            layer.cumulative_length.fill_(context)

    def step() -> torch.Tensor:
        return forward(input_ids=ids, past_key_values=cache, use_cache=True).logits

    begin_round()
    if device != "cuda":
        step()

        def logits() -> torch.Tensor:
            begin_round()
            return step()

        return Call(step, logits, begin_round, most_calls=SLACK - 1)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    measured = Call(step, step, begin_round, 0)
    measure_memory(measured, device)
    begin_round()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()

    def replayed() -> torch.Tensor:
        begin_round()
        graph.replay()
        return captured

    return Call(graph.replay, replayed, begin_round, SLACK - 1, measured.peak_bytes, measured.activation_bytes)


def seconds(call: Call, count: int, device: str) -> float:
    """Per call."""
    call.begin_round()
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call.run()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def quantile(values: list[float], fraction: float) -> float:
    return sorted(values)[round(fraction * (len(values) - 1))]


def measure(calls: dict[str, Call], given: argparse.Namespace) -> dict[str, list[float]]:
    """Each way's times of a call, round by round."""
    counts = {}
    for name, call in calls.items():
        once = seconds(call, 2, given.device)
        counts[name] = max(1, min(call.most_calls, int(given.round_ms * 1e-3 / once)))
    times = {name: [] for name in calls}
    for _ in range(given.rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, counts[name], given.device))
    return times


def phase_rows(phase: str, batch: int, tokens: int, make: Callable, ways: dict[str, Callable], given) -> list[dict]:
    calls = {}
    for name, forward in ways.items():
        start = time.perf_counter()
        try:
            calls[name] = make(forward)
        except Exception:
            traceback.print_exc()
            print(f"llama_shaped: {phase} {batch} x {tokens}, {name}: failed, left out", file=sys.stderr)
        else:
            print(f"{phase} {batch} x {tokens}, {name}: ready after {time.perf_counter() - start:.1f} s", file=sys.stderr)
    if "stock" not in calls:
        return []
    expected = calls["stock"].logits().double()
    errors = {name: ((call.logits().double() - expected).norm() / expected.norm()).item() for name, call in calls.items()}
    times = measure(calls, given)
    rows = []
    for name, values in times.items():
        us = statistics.median(values) * 1e6
        produced = batch * tokens if phase == "prefill" else batch
        rows.append({
            "op": "llama", "phase": phase, "batch": batch, "tokens": tokens, "dtype": given.dtype, "provider": name,
            "time_us": round(us, 2), "time_us_p10": round(quantile(values, 0.1) * 1e6, 2),
            "time_us_p90": round(quantile(values, 0.9) * 1e6, 2), "tokens_per_second": round(produced / us * 1e6, 1),
            "ratio_vs_stock": round(statistics.median(s / v for s, v in zip(times["stock"], values)), 4),
            "peak_bytes": calls[name].peak_bytes, "activation_bytes": calls[name].activation_bytes,
            "relative_l2_to_stock": float(f"{errors[name]:.3g}"),
        })  # fmt: skip
        print(f"| {phase} | {batch} x {tokens} | {name} | {rows[-1]['tokens_per_second']:.0f} | "
              f"{rows[-1]['ratio_vs_stock']:.3f} | {(calls[name].activation_bytes or 0) / 1e6:.1f} | "
              f"{errors[name]:.1e} |", flush=True)  # fmt: skip
    return rows


def context(given: argparse.Namespace) -> dict:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True,
                            capture_output=True).stdout.strip()  # fmt: skip
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    return {
        "gpu": torch.cuda.get_device_name() if given.device == "cuda" else None, "cpu": cpu,
        "version": gatefold.__version__, "torch": torch.__version__, "transformers": transformers.__version__,
        "layers": given.layers, "hidden_size": given.hidden_size, "intermediate_size": given.intermediate_size,
        "commit": commit, "command": " ".join(["bench/llama_shaped.py", *sys.argv[1:]]), "rounds": given.rounds,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def pairs(text: str) -> list[tuple[int, int]]:
    return [tuple(int(number) for number in part.split("x")) for part in text.split(",") if part]


@torch.no_grad()
def main() -> None:
    given = options()
    torch.manual_seed(1)
    model = build(given)
    ways = ways_of(model, given.ways)
    rows = []
    print("| phase | | way | tokens/s | x stock | MB beside weights and cache | to stock |\n|---|---|---|---|---|---|---|")
    for batch, tokens in pairs(given.prefill):
        ids = torch.randint(given.vocabulary, (batch, tokens), device=given.device)
        rows += phase_rows("prefill", batch, tokens, lambda f: prefill(f, ids, given.device), ways, given)
    for batch, tokens in pairs(given.decode):
        ids = torch.randint(given.vocabulary, (batch, 1), device=given.device)
        rows += phase_rows("decode", batch, tokens, lambda f: decode(f, model, ids, tokens, given.device), ways, given)
    if given.output:
        given.output.write_text(json.dumps({"context": context(given), "rows": rows}, indent=1) + "\n")
    if not rows:
        sys.exit("llama_shaped: nothing was measured")


if __name__ == "__main__":
    main()
