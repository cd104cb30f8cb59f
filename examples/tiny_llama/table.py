#!/usr/bin/env python3
"""The table of what evaluate.py measured: table.py FILE

Means over the seeds' models, and their standard errors. The last column is of each seed's own difference: both MLPs had
the same weights and the same text, so that what models and texts differ in drops out. Its standard error is the larger of
two: by how the seeds' differences spread, and by how those of the texts of a seed do. (A seed's difference varies at
least as much as its texts make it, and five of them may lie close together by chance.)
"""

import json
import math
import statistics
import sys
from pathlib import Path

# key: (what it is, factor, digits, is less better)
MEASURES = {
    "loss_distance": ("held-out loss, distance from fp32's, 10⁻⁵ nats", 1e5, 2, True),
    "divergence": ("KL divergence from fp32, 10⁻⁶ nats", 1e6, 2, True),
    "greedy_agreement": ("likeliest byte is fp32's, %", 1e2, 3, False),
    "continuation_agreement": ("continued bytes before a difference, %", 1e2, 2, False),
    "accuracy": ("next byte right, %", 1e2, 3, False),
}


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean, and the standard error of it; of a single value nan."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def by_seed(rows: list[dict], dtype: str, provider: str, key: str) -> list[float]:
    wanted = [row for row in rows if row["dtype"] == dtype and row["provider"] == provider]
    return [row[key] for row in sorted(wanted, key=lambda row: row["seed"])]


def differences(rows: list[dict], dtype: str, key: str) -> list[float]:
    """Gatefold's less the stock module's, seed by seed."""
    ours, stock = (by_seed(rows, dtype, provider, key) for provider in ("gatefold", "stock"))
    return [a - b for a, b in zip(ours, stock)]


def error_of_differences(rows: list[dict], dtype: str, key: str) -> float:
    """The standard error of their mean: sqrt(max(variance between seeds, mean variance within one) / seeds)."""
    by_seeds = mean_and_error(differences(rows, dtype, key))[1]
    paired = [row["paired_error"][key] for row in rows if row["dtype"] == dtype and row["provider"] == "gatefold"]
    by_texts = statistics.fmean(error**2 for error in paired) ** 0.5 / len(paired) ** 0.5
    return by_texts if len(paired) == 1 else max(by_seeds, by_texts)


def worse_by(rows: list[dict], dtype: str, key: str) -> float:
    """By how many standard errors Gatefold is worse in the mean; below 0: better."""
    mean = statistics.fmean(differences(rows, dtype, key))
    return (mean if MEASURES[key][3] else -mean) / error_of_differences(rows, dtype, key)


def differing_continuations(rows: list[dict], dtype: str) -> dict[str, int]:
    """Of all seeds together: how many were not fp32's with both MLPs, and with one alone."""
    found = [row["differing_continuations"] for row in rows if row["dtype"] == dtype and row["provider"] == "gatefold"]
    return {name: sum(counts[name] for counts in found) for name in ("both", "stock", "gatefold")}


def sign_test(a: int, b: int) -> float:
    """How probable it is that a fair coin, thrown a + b times, falls at least as unevenly as a to b."""
    n = a + b
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(min(a, b) + 1)) / 2**n)


def _text(mean: float, error: float, factor: float, digits: int, sign: str = "") -> str:
    return f"{factor * mean:{sign}.{digits}f} ± {factor * error:.{digits}f}"


def _share_of_ties(rows: list[dict], dtype: str, provider: str) -> str:
    """Of the likeliest bytes that are not fp32's, those that another byte's logit equals."""
    differ = sum(1 - value for value in by_seed(rows, dtype, provider, "greedy_agreement"))
    tied = sum(by_seed(rows, dtype, provider, "tied_difference"))
    return f"{100 * tied / differ:.0f} %" if differ else "none differs"


def markdown(rows: list[dict]) -> str:
    loss, accuracy = (by_seed(rows, "fp32", "stock", key) for key in ("loss", "accuracy"))
    lines = [
        f"fp32: held-out loss {_text(*mean_and_error(loss), 1, 3)} nats a byte, next byte right "
        f"{_text(*mean_and_error(accuracy), 100, 2)} %",
        "", "| | | stock MLP | Gatefold | Gatefold − stock |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for dtype in ("bf16", "fp16"):
        for key, (name, factor, digits, _) in MEASURES.items():
            digits += dtype == "fp16" and key in ("loss_distance", "divergence")  # where they are far smaller
            cells = [_text(*mean_and_error(by_seed(rows, dtype, provider, key)), factor, digits)
                     for provider in ("stock", "gatefold")]  # fmt: skip
            mean = statistics.fmean(differences(rows, dtype, key))
            cells.append(_text(mean, error_of_differences(rows, dtype, key), factor, digits, "+"))
            lines.append(f"| {dtype} | {name} | {' | '.join(cells)} |")
    lines += ["", "| | continuations that are not fp32's: with both | with the stock MLP alone | with Gatefold alone "
              "| sign test of the two | likeliest bytes that are not fp32's and tied: stock | Gatefold |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    for dtype in ("bf16", "fp16"):
        counts = differing_continuations(rows, dtype)
        ties = [_share_of_ties(rows, dtype, provider) for provider in ("stock", "gatefold")]
        cells = [*map(str, counts.values()), f"p = {sign_test(counts['stock'], counts['gatefold']):.2f}", *ties]
        lines.append(f"| {dtype} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())["rows"]))
