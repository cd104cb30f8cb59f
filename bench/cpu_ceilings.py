#!/usr/bin/env python3
"""How many times as fast as PyTorch any MLP could be on a machine, from what was measured there.

    bench/cpu_ceilings.py results/cpu/zen5/mlp_bf16.json results/cpu/zen5/roofline_bf16.json

The first file is bench/cpu_against_torch.py's, the second one of gatefold bench --roofline. A ceiling is PyTorch's time
divided by max(bytes of weights / read bandwidth, operations / peak): reading and computing fully overlapped, both at
their best. Beside it what was reached, as part of the ceiling.
"""
import argparse
import json
from pathlib import Path
from statistics import geometric_mean

ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


def bound_us(row, read_gbps, peak_tflops):
    weights = 3 * row["hidden_size"] * row["intermediate_size"]
    reading = weights * ELEMENT_BYTES[row["dtype"]] / read_gbps * 1e-3
    computing = 2 * weights * row["tokens"] / peak_tflops * 1e-6
    return max(reading, computing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path, help="JSON of bench/cpu_against_torch.py")
    parser.add_argument("roofline", type=Path, help="JSON of gatefold bench --roofline, of the same dtype")
    parser.add_argument("--read-gbps", type=float, help="in place of the roofline's read bandwidth")
    options = parser.parse_args()
    context = json.loads(options.roofline.read_text())["context"]
    read_gbps = options.read_gbps or context["read_gbps"]
    peak_tflops = max(context["unit_tflops"].values())
    rows = json.loads(options.measured.read_text())["rows"]
    ours = {(row["model"], row["tokens"]): row for row in rows if row["provider"] == "gatefold"}
    theirs = {(row["model"], row["tokens"]): row for row in rows if row["provider"] == "torch"}
    ceilings = {cell: row["time_us"] / bound_us(row, read_gbps, peak_tflops) for cell, row in theirs.items()}
    ratios = {cell: row["ratio_vs_torch"] for cell, row in ours.items()}

    print(f"PyTorch's time / bound at {read_gbps:.1f} GB/s and {peak_tflops:.3f} TFLOP/s (reached)\n")
    tokens = sorted({cell[1] for cell in ceilings})
    print("| model | " + " | ".join(map(str, tokens)) + " tokens |\n|" + "---|" * (len(tokens) + 1))
    for model in dict.fromkeys(cell[0] for cell in ceilings):
        cells = [f"{ceilings[model, t]:.2f} ({ratios[model, t]:.2f})" for t in tokens]
        print(f"| {model} | " + " | ".join(cells) + " |")
    ceiling, reached = geometric_mean(ceilings.values()), geometric_mean(ratios.values())
    print(f"\ngeometric means: ceiling {ceiling:.2f}, reached {reached:.2f}, {reached / ceiling:.2f} of it")


if __name__ == "__main__":
    main()
