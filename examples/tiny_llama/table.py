#!/usr/bin/env python3
"""The table of what evaluate.py measured: table.py FILE

Means over the seeds' models, and their standard errors. The last column is of each seed's own difference: both MLPs had
the same weights and the same text, so that what models and texts differ in drops out.
"""

import json
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


def worse_by(rows: list[dict], dtype: str, key: str) -> float:
    """By how many standard errors Gatefold is worse in the mean; below 0: better."""
    mean, error = mean_and_error(differences(rows, dtype, key))
    return (mean if MEASURES[key][3] else -mean) / error


def _text(values: list[float], factor: float, digits: int, sign: str = "") -> str:
    mean, error = mean_and_error([factor * value for value in values])
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"


def markdown(rows: list[dict]) -> str:
    loss, accuracy = (by_seed(rows, "fp32", "stock", key) for key in ("loss", "accuracy"))
    lines = [
        f"fp32: held-out loss {_text(loss, 1, 3)} nats a byte, next byte right {_text(accuracy, 100, 2)} %",
        "", "| | | stock MLP | Gatefold | Gatefold − stock |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for dtype in ("bf16", "fp16"):
        for key, (name, factor, digits, _) in MEASURES.items():
            digits += dtype == "fp16" and key in ("loss_distance", "divergence")  # where they are far smaller
            cells = [_text(by_seed(rows, dtype, provider, key), factor, digits) for provider in ("stock", "gatefold")]
            cells.append(_text(differences(rows, dtype, key), factor, digits, "+"))
            lines.append(f"| {dtype} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())["rows"]))
