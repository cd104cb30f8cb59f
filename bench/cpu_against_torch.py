#!/usr/bin/env python3
"""A whole MLP on the CPU by Gatefold and by PyTorch, alternating in one process, both held against double precision.

    bench/cpu_against_torch.py --library build/release/src/libgatefold.so --dtype bf16 --output FILE

Gatefold is called through its C interface. Both read the same weights; a call takes the next layer's, as a model does,
as far as --weight-bytes go. A round lasts --round-ms for each provider, after a call that isn't timed; the median of
the rounds' ratios is reported. The environment says what either may use: OMP_NUM_THREADS, GATEFOLD_IMPL,
ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA.
"""
import argparse
import ctypes
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import torch

from c_interface import Args, Desc

MODELS = {  # hidden size, intermediate size, layers
    "llama3.1-8b": (4096, 14336, 32),
    "llama3.2-1b": (2048, 8192, 16),
    "smollm2-135m": (576, 1536, 30),
}
DTYPES = {"fp32": (1, torch.float32), "fp16": (2, torch.float16), "bf16": (3, torch.bfloat16)}
GATE_UP, MLP, CPU, SEPARATE, SILU = 4, 5, 1, 1, 1


class Layers:
    """Random weights of as many layers as fit, of which each call takes the next."""

    def __init__(self, hidden, intermediate, layers, dtype, weight_bytes):
        one = 3 * hidden * intermediate * torch.empty((), dtype=dtype).element_size()
        self.layers = [self.random(hidden, intermediate, dtype) for _ in range(min(layers, max(1, weight_bytes // one)))]
        self.bytes, self.called = one, 0

    @staticmethod
    def random(hidden, intermediate, dtype):
        shapes = [(intermediate, hidden), (intermediate, hidden), (hidden, intermediate)]
        return [(torch.randn(shape) * shape[1] ** -0.5).to(dtype) for shape in shapes]

    def next(self):
        self.called += 1
        return self.layers[self.called % len(self.layers)]


class Gatefold:
    def __init__(self, library, op, dtype, hidden, intermediate, tokens):
        self.library = library
        library.gatefold_last_error.restype = ctypes.c_char_p
        library.gatefold_plan_implementation.restype = ctypes.c_char_p
        library.gatefold_plan_implementation.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        desc = Desc(struct_size=ctypes.sizeof(Desc), op=op, dtype=DTYPES[dtype][0], device=CPU, layout=SEPARATE,
                    activation=SILU, hidden_size=hidden, intermediate_size=intermediate)
        self.plan = ctypes.c_void_p()
        self.must(library.gatefold_plan_create(ctypes.byref(desc), ctypes.byref(self.plan)))
        size = ctypes.c_size_t()
        self.must(library.gatefold_plan_workspace_size(self.plan, ctypes.c_int64(tokens), ctypes.byref(size)))
        self.memory = torch.empty(size.value + 256, dtype=torch.uint8)
        self.tokens, self.op = tokens, op
        self.args = Args(struct_size=ctypes.sizeof(Args), tokens=tokens, workspace_size=size.value,
                         workspace=(self.memory.data_ptr() + 255) // 256 * 256)

    def must(self, status):
        if status != 0:
            sys.exit(f"cpu_against_torch: {self.library.gatefold_last_error().decode()}")

    def implementation(self):
        return self.library.gatefold_plan_implementation(self.plan, self.tokens).decode()

    def run(self, x, weights, out):
        self.args.x, self.args.out = x.data_ptr(), out.data_ptr()
        self.args.gate, self.args.up = weights[0].data_ptr(), weights[1].data_ptr()
        self.args.down = weights[2].data_ptr() if self.op == MLP else None
        self.must(self.library.gatefold_run(self.plan, ctypes.byref(self.args)))


def torch_h(x, weights):
    gate = torch.nn.functional.linear(x, weights[0])
    return torch.nn.functional.silu(gate, inplace=True).mul_(torch.nn.functional.linear(x, weights[1]))


def torch_mlp(x, weights):
    return torch.nn.functional.linear(torch_h(x, weights), weights[2])


def truth(x, weights):
    """h and y in double precision; y of the exact h."""
    x = x.double()
    h = torch.nn.functional.silu(x @ weights[0].double().T).mul_(x @ weights[1].double().T)
    return h, h @ weights[2].double().T


def relative_l2(out, exact):
    return (torch.linalg.norm(out.double() - exact) / torch.linalg.norm(exact)).item()


def timed(call, round_ms):
    """Mean microseconds of a call, over a round."""
    call()
    calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) * 1e3 < round_ms:
        call()
        calls += 1
    return elapsed * 1e6 / calls


def quantile(values, fraction):
    values = sorted(values)
    return values[min(len(values) - 1, round(fraction * (len(values) - 1)))]


def cell(options, library, model, tokens):
    hidden, intermediate, _ = MODELS[model]
    layers = options.layers
    dtype = DTYPES[options.dtype][1]
    x = torch.randn(tokens, hidden).to(dtype)
    y, h = torch.empty_like(x), torch.empty(tokens, intermediate, dtype=dtype)
    mlp = Gatefold(library, MLP, options.dtype, hidden, intermediate, tokens)

    weights = layers.layers[0]
    exact_h, exact_y = truth(x, weights)
    mlp.run(x, weights, y)
    Gatefold(library, GATE_UP, options.dtype, hidden, intermediate, tokens).run(x, weights, h)
    errors = {"gatefold": (relative_l2(h, exact_h), relative_l2(y, exact_y)),
              "torch": (relative_l2(torch_h(x, weights), exact_h), relative_l2(torch_mlp(x, weights), exact_y))}

    providers = {"gatefold": lambda: mlp.run(x, layers.next(), y), "torch": lambda: torch_mlp(x, layers.next())}
    times = {name: [] for name in providers}
    for call in providers.values():
        call()
    for _ in range(options.rounds):
        for name, call in providers.items():
            times[name].append(timed(call, options.round_ms))
    ratio = quantile([b / a for a, b in zip(times["gatefold"], times["torch"])], 0.5)
    rows = []
    for name, values in times.items():
        us = quantile(values, 0.5)
        row = {"op": "mlp", "model": model, "tokens": tokens, "hidden_size": hidden,
               "intermediate_size": intermediate, "dtype": options.dtype, "activation": "silu", "layout": "separate",
               "provider": name, "implementation": mlp.implementation() if name == "gatefold" else torch.__version__,
               "time_us": round(us, 1), "time_us_p10": round(quantile(values, 0.1), 1),
               "time_us_p90": round(quantile(values, 0.9), 1),
               "tflops": round(6 * tokens * hidden * intermediate / us * 1e-6, 4),
               "gbps": round(layers.bytes / us * 1e-3, 2),
               "relative_l2_h": float(f"{errors[name][0]:.3g}"), "relative_l2_y": float(f"{errors[name][1]:.3g}")}
        if name == "gatefold":
            row["ratio_vs_torch"] = round(ratio, 3)
        if tokens <= 8 and options.read_gbps:
            row["fraction_of_read_bandwidth"] = round(row["gbps"] / options.read_gbps, 3)
        rows.append(row)
    return rows


def context(options):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True,
                            capture_output=True).stdout.strip()
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    environment = {name: os.environ[name] for name in
                   ("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GATEFOLD_IMPL", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
                   if name in os.environ}
    return {"cpu": cpu, "threads": torch.get_num_threads(), "torch": torch.__version__, "os": platform.platform(),
            "commit": commit, "command": " ".join(["bench/cpu_against_torch.py", *sys.argv[1:]]),
            "environment": environment, "weight_bytes": options.weight_bytes, "rounds": options.rounds,
            "date": datetime.date.today().isoformat()}


def geometric_mean(values):
    product = 1.0
    for value in values:
        product *= value
    return product ** (1 / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libgatefold.so")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tokens", default="1,2,4,8,16,32,64,128,512")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--round-ms", type=float, default=50)
    parser.add_argument("--weight-bytes", type=int, default=1 << 30, help="of the layers that calls take in turn")
    parser.add_argument("--read-gbps", type=float, help="the machine's read bandwidth, as gatefold bench --roofline says")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    torch.manual_seed(time.time_ns())
    library = ctypes.CDLL(options.library)
    rows = []
    print("| model | tokens | gatefold, us | torch, us | torch / gatefold | y: gatefold | torch |\n|---|---|---|---|---|---|---|")
    with torch.inference_mode():
        for model in options.models.split(","):
            options.layers = Layers(*MODELS[model], DTYPES[options.dtype][1], options.weight_bytes)
            for tokens in map(int, options.tokens.split(",")):
                ours, theirs = cell(options, library, model, tokens)
                rows += [ours, theirs]
                print(f"| {model} | {tokens} | {ours['time_us']} | {theirs['time_us']} | {ours['ratio_vs_torch']:.2f} "
                      f"| {ours['relative_l2_y']:.2e} | {theirs['relative_l2_y']:.2e} |", flush=True)
    ratios = [row["ratio_vs_torch"] for row in rows if "ratio_vs_torch" in row]
    print(f"\n{options.dtype}: geometric mean {geometric_mean(ratios):.3f}, smallest {min(ratios):.3f} of {len(ratios)}")
    if options.output:
        options.output.write_text(json.dumps({"context": context(options), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
