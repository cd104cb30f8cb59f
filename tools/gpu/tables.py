#!/usr/bin/env python3
"""Markdown tables of the result files that tools/gpu/measure made: tables.py FOLDER"""
import json
import math
import pathlib
import sys


def mean(values):
    """The geometric mean; nan of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def table(header, rows):
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def cells(rows):
    """(model, tokens) -> provider -> row"""
    result = {}
    for row in rows:
        result.setdefault((row["model"], row["tokens"]), {})[row["provider"]] = row
    return result


def gate_up(name, rows):
    """Gatefold against every other provider of the same cell."""
    print(f"### {name}\n")
    lines, ratios = [], {}
    for (model, tokens), providers in cells(rows).items():
        ours = providers["gatefold"]
        line = [model, str(tokens), f"{ours['time_us']:.1f}", f"{ours['tflops']:.0f}"]
        for other in [p for p in providers if p != "gatefold"]:
            column = {"gemm-only": "ratio_vs_gemm_only", "unfused": "ratio_vs_unfused"}.get(other, f"ratio_vs_{other}")
            ratio = ours.get(column) or providers[other]["time_us"] / ours["time_us"]
            ratios.setdefault(other, []).append(ratio)
            line.append(f"{ratio:.3f}")
        if "gemm" in providers and "gemm-only" in providers:
            ratios.setdefault("own gemm vs gemm-only", []).append(providers["gemm"]["ratio_vs_gemm_only"])
        lines.append(line)
    others = [p for p in ratios if p != "own gemm vs gemm-only"]
    table(["model", "tokens", "us", "TFLOP/s"] + [f"vs {other}" for other in others], lines)
    for other, values in ratios.items():
        print(f"{other}: geometric mean {mean(values):.3f}, least {min(values):.3f}, {len(values)} cells")
    print()
    return ratios


def gemm_gated(name, rows):
    """Each way to force it against the pair and against the library's own product of the same cell."""
    print(f"### {name}\n")
    lines, ratios = [], {}
    for (model, tokens), providers in cells(rows).items():
        for provider in (p for p in providers if p.startswith("gatefold")):
            ours = providers[provider]
            line = [model, str(tokens), provider, f"{ours['time_us']:.1f}", f"{ours['tflops']:.0f}"]
            for other in ("unfused", "gemm"):
                ratio = providers[other]["time_us"] / ours["time_us"]
                ratios.setdefault((provider, other), []).append(ratio)
                line.append(f"{ratio:.3f}")
            lines.append(line)
    table(["model", "tokens", "provider", "us", "TFLOP/s", "vs unfused", "vs gemm"], lines)
    for (provider, other), values in ratios.items():
        print(f"{provider} vs {other}: geometric mean {mean(values):.3f}, least {min(values):.3f}, {len(values)} cells")
    print()


def act_and_mul(rows):
    print("### act_and_mul\n")
    table(
        ["dtype", "tokens", "F", "GB/s", "x copy", "x eager pair"],
        [
            [r["dtype"], str(r["tokens"]), str(r["intermediate_size"]), f"{r['gbps']:.0f}", f"{r['ratio_vs_copy']:.3f}",
             f"{r['ratio_vs_eager']:.3f}"]
            for r in rows
            if r["provider"] == "gatefold"
        ],
    )  # fmt: skip


def layouts(rows):
    print("### layouts\n")
    table(
        ["model", "tokens", "weights", "us", "x [gate; up]"],
        [[r["model"], str(r["tokens"]), r["case"], f"{r['time_us']:.1f}", f"{r['ratio']:.3f}"] for r in rows],
    )


def tensor_cores(rows):
    print("### tensor_cores\n")
    table(["loop", "TFLOP/s"], [[r["loop"], f"{r['teraflops']:.0f}"] for r in rows])


def ceiling(name, rows):
    """What copies leave of products, and the share of it that cuBLASLt's chain and Gatefold reach."""
    print(f"### {name}\n")
    body, shares = [], {"cublaslt": [], "gatefold": []}
    for (model, tokens), ways in cells(rows).items():
        least = ways["products, all operands"]["time_us"]
        for way, values in shares.items():
            values.append(least / ways[way]["time_us"])
        body.append([model, str(tokens), f"{ways['reading']['time_us']:.1f}", f"{ways['products']['time_us']:.1f}",
                     f"{ways['products, weights']['time_us']:.1f}", f"{least:.1f}",
                     *(f"{values[-1]:.3f}" for values in shares.values())])  # fmt: skip
    body.append(["geometric mean", "", "", "", "", "", *(f"{mean(values):.3f}" for values in shares.values())])
    table(["model", "tokens", "reading, us", "products", "and weights", "and all operands", "cuBLASLt of it", "Gatefold"],
          body)  # fmt: skip


def verify(rows):
    print("### verify\n")
    keys = list(rows[0])
    table(keys, [[f"{r[k]:.3g}" if isinstance(r[k], float) else str(r[k]) for k in keys] for r in rows])


def main(folder):
    together = {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        rows = json.loads(path.read_text())["rows"]
        if path.stem.endswith("ceiling"):
            ceiling(path.stem, rows)
        elif path.stem.startswith("gate_up"):
            for other, values in gate_up(path.stem, rows).items():
                if path.stem.startswith("gate_up_llama"):
                    together.setdefault(other, []).extend(values)
        elif path.stem.startswith("gemm_gated"):
            gemm_gated(path.stem, rows)
        elif path.stem == "act_and_mul":
            act_and_mul(rows)
        elif path.stem == "layouts":
            layouts(rows)
        elif path.stem == "tensor_cores":
            tensor_cores(rows)
        elif path.stem == "verify":
            verify(rows)
    for other, values in together.items():
        print(f"Llama, {len(values)} cells, {other}: geometric mean {mean(values):.3f}, least {min(values):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
