#!/usr/bin/env python3
"""Every kernel that can take a down-projection on a GPU, against torch.mm, in one process and in rounds.

    bench/gemm_kernels.py --library build/release/src/libgatefold.so [--models llama3.1-8b,..] [--tokens 72,128,..]
                          [--kernels all|chosen|EXPRESSION] [--seconds 60] [--json FILE]

y [T, D] = h [T, F] . w_down [D, F]^T in bf16, by gatefold_run, in CUDA graphs that go through as many layers' weights as
make 400 MB, so that these come from memory. For each cell: torch's time, what Gatefold chooses, and its kernels one by
one, each held to torch's result. Times are medians of three rounds of some 8 ms; the GPU is not brought to its settled
clock, so compare what stands in one row.
"""
import argparse
import ctypes
import datetime
import json
import pathlib
import random
import re
import statistics
import sys
import time

import torch

from c_interface import Args, Candidate, Desc

GEMM, BF16, CUDA = 2, 3, 2
MODELS = pathlib.Path(__file__).resolve().parent.parent / "tools" / "checkpoint" / "models.json"
FAMILIES = ("sm90", "sm90_decode")


class Gemm:
    """y = x . w^T by one plan. implementation: "" for what is chosen."""

    def __init__(self, library, depth, columns, implementation):
        self.library = library
        desc = Desc(struct_size=ctypes.sizeof(Desc), op=GEMM, dtype=BF16, device=CUDA, hidden_size=depth,
                    intermediate_size=columns, implementation=implementation.encode() or None)
        self.plan = ctypes.c_void_p()
        self.must(library.gatefold_plan_create(ctypes.byref(desc), ctypes.byref(self.plan)))

    def must(self, status):
        if status != 0:
            sys.exit(f"gemm_kernels: {self.library.gatefold_last_error().decode()}")

    def kernels(self):
        for family in FAMILIES:
            index = 0
            while name := self.library.gatefold_plan_kernel(self.plan, family.encode(), index):
                yield f"{family}:{name.decode()}"
                index += 1

    def chosen(self, tokens):
        candidate, index = Candidate(), 0
        while self.library.gatefold_plan_candidate(self.plan, ctypes.c_int64(tokens), index, ctypes.byref(candidate)):
            if candidate.chosen:
                return f"{candidate.name.decode()}: {candidate.reason.decode().split('; ')[-1]}"
            index += 1

    def on(self, x, out):
        """A function of a weight and a stream. What it is given must live as long as it."""
        size = ctypes.c_size_t()
        self.must(self.library.gatefold_plan_workspace_size(self.plan, ctypes.c_int64(len(x)), ctypes.byref(size)))
        memory = torch.empty(size.value + 256, dtype=torch.uint8, device="cuda")
        args = Args(struct_size=ctypes.sizeof(Args), tokens=len(x), x=x.data_ptr(), out=out.data_ptr(),
                    workspace=(memory.data_ptr() + 255) // 256 * 256, workspace_size=size.value)

        def enqueue(weight, stream, memory=memory):
            args.up, args.stream = weight.data_ptr(), stream.cuda_stream
            self.must(self.library.gatefold_run(self.plan, ctypes.byref(args)))

        return enqueue


def load(path):
    library = ctypes.CDLL(path)
    for function in ("gatefold_last_error", "gatefold_plan_kernel"):
        getattr(library, function).restype = ctypes.c_char_p
    return library


def captured(enqueue, weights):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        enqueue(weights[0], stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for weight in weights:
            enqueue(weight, stream)
    return graph


def timed(graphs, calls, estimate):
    """Microseconds of a call of each, the median of three rounds, each in an order of its own: what follows a kernel that
    draws much power runs at a lower clock."""
    times = {name: [] for name in graphs}
    replays = max(2, int(8e3 / (estimate * calls)))
    for _ in range(3):
        for name in random.sample(list(graphs), len(graphs)):
            graph = graphs[name]
            graph.replay()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / (replays * calls))
    return {name: statistics.median(of_one) for name, of_one in times.items()}


def measure(library, weights, tokens, names):
    """Rows of one cell. Each kernel's result is held to torch's, within what bf16 and another order of sums make."""
    columns, depth = weights[0].shape
    x = torch.randn(tokens, depth, device="cuda", dtype=torch.bfloat16)
    truth = torch.empty(tokens, columns, device="cuda", dtype=torch.bfloat16)
    graphs = {"torch": captured(lambda weight, stream: torch.mm(x, weight.t(), out=truth), weights)}
    torch.cuda.synchronize()
    outputs, runs = {}, []
    for name in names:
        gemm = Gemm(library, depth, columns, name)
        outputs[name] = torch.full_like(truth, float("nan"))
        runs.append(gemm.on(x, outputs[name]))  # which holds the workspace that the graph uses
        graphs[name or gemm.chosen(tokens)] = captured(runs[-1], weights)
    for graph in graphs.values():
        graph.replay()
    torch.cuda.synchronize()
    for name, output in outputs.items():
        error = ((output.float() - truth.float()).norm() / truth.float().norm()).item()
        if not error < 2 ** -8:  # two roundings of 2^-9 each, at most
            sys.exit(f"gemm_kernels: {name or 'what is chosen'}, {tokens} tokens of {depth} x {columns}: off by {error}")
    estimate = 2.0 * tokens * depth * columns / 500e6 + 2.0 * depth * columns / 3e6  # us
    return timed(graphs, len(weights), estimate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--models", default="llama3.2-1b,llama3.1-8b,llama3.1-70b,qwen3-14b,gemma2-9b,llama3.1-405b")
    parser.add_argument("--tokens", default="72,96,128,160,192,256,320,384,512,640,768,1024")
    parser.add_argument("--kernels", default="all", help="all, chosen, or a regular expression that names match")
    parser.add_argument("--seconds", type=float, default=600.0, help="begin no further cell after so many")
    parser.add_argument("--json")
    options = parser.parse_args()
    library, sizes = load(options.library), json.loads(MODELS.read_text())
    torch.manual_seed(0)
    rows, begun = [], time.monotonic()
    print("| model | tokens | torch, us | torch / chosen | chosen | torch / best | best |\n|---|---|---|---|---|---|---|")
    for model in options.models.split(","):
        depth, columns = sizes[model]["intermediate_size"], sizes[model]["hidden_size"]
        layers = max(2, -(-400_000_000 // (2 * depth * columns)))
        weights = [torch.randn(columns, depth, device="cuda", dtype=torch.bfloat16) * depth**-0.5 for _ in range(layers)]
        names = [""]
        if options.kernels != "chosen":
            expression = "" if options.kernels == "all" else options.kernels
            names += [name for name in Gemm(library, depth, columns, "").kernels() if re.search(expression, name)]
        for tokens in map(int, options.tokens.split(",")):
            if time.monotonic() - begun > options.seconds:
                break
            # A kernel for few tokens reads the weights once for each of its tiles of tokens.
            fitting = [name for name in names if tokens <= 128 or not name.startswith(("sm90_decode", "decode"))]
            times = measure(library, weights, tokens, fitting)
            base = times.pop("torch")
            chosen = next(name for name in times if ": " in name)  # with its family's description
            best = min(times, key=times.get)
            print(f"| {model} | {tokens} | {base:.1f} | {base / times[chosen]:.3f} | {chosen} | {base / times[best]:.3f} "
                  f"| {best} |", flush=True)
            rows += [{"model": model, "tokens": tokens, "depth": depth, "columns": columns, "kernel": name,
                      "chosen": name == chosen, "time_us": us, "ratio_vs_torch": base / us} for name, us in times.items()]
    if options.json:
        context = {"command": " ".join(sys.argv), "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
                   "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        pathlib.Path(options.json).write_text(json.dumps({"context": context, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
