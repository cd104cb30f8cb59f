"""TFLOP/s of gate_up against tokens, and the speed-up that it makes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import _style
from ._results import File, Results, Row, models_of, name_of
from ._style import Theme

LLAMA = ["llama3.1-8b", "llama3.1-70b", "llama3.1-405b"]
TICKS = [128, 512, 2048, 8192, 32768]


def gate_up_files(results: Results) -> list[File]:
    """The files that hold the three Llama sizes, few tokens to many. Raises Missing."""
    names = [f"gate_up_{model}.json" for model in LLAMA]
    return results.files(["gate_up_small_t.json", "gate_up_between.json", *names])


def gate_up_rows(results: Results) -> list[Row]:
    return [row for file in gate_up_files(results) for row in file.rows]


def _line(axes: Axes, rows: list[Row], key: str, **style: object) -> None:
    points = sorted((row["tokens"], row[key]) for row in rows if row.get(key) is not None)
    axes.plot([x for x, _ in points], [y for _, y in points], **style)


def throughput(results: Results, theme: Theme) -> Figure:
    """Three Llama sizes: unfused, the bare product, Gatefold and its Ampere kernel; below, Gatefold over the others."""
    files = gate_up_files(results)
    rows = [row for file in files for row in file.rows]
    ampere = results.file("gate_up_sm80.json", [files[0].path.parent.relative_to(results.folder).as_posix()])
    models = models_of(rows)
    figure, axes = _style.subplots(2, len(models), 5.2, sharex=True, sharey="row", height_ratios=[1.5, 1])
    for column, model in enumerate(models):
        top, bottom = axes[0][column], axes[1][column]
        of = {provider: [r for r in rows if (r["model"], r["provider"]) == (model, provider)]
              for provider in ("gatefold", "gemm-only", "unfused")}  # fmt: skip
        _line(top, of["gatefold"], "tflops", color=theme.blue, marker="o", label="Gatefold", zorder=4)
        _line(top, of["gemm-only"], "tflops", color=theme.muted, marker="s", label="cuBLASLt product alone")
        _line(top, of["unfused"], "tflops", color=theme.orange, marker="^", label="unfused: product, act_and_mul")
        _line(top, ampere.of(model=model, provider="gatefold"), "tflops", color=theme.purple, marker="D",
              label="Gatefold's Ampere kernel")  # fmt: skip
        sizes = of["gatefold"][0]
        top.set_title(f"{name_of(model)}\n", loc="left")
        top.text(0, 1.02, f"{sizes['hidden_size']} × {sizes['intermediate_size']}", transform=top.transAxes,
                 color=theme.muted)  # fmt: skip
        bottom.axhline(1, color=theme.text, linewidth=1)
        _line(bottom, of["gatefold"], "ratio_vs_unfused", color=theme.orange, marker="^", zorder=3)
        _line(bottom, of["gatefold"], "ratio_vs_gemm_only", color=theme.muted, marker="s")
        _style.token_axis(bottom, TICKS)
    axes[0][0].set_ylim(200, None)
    axes[0][0].set_ylabel("TFLOP/s, higher is better")
    axes[1][0].set_ylabel("Gatefold's speed ÷\nthe other's")
    wins = [row["ratio_vs_unfused"] for row in rows if row["provider"] == "gatefold" and row["tokens"] >= 1024]
    _style.head(figure, theme, "Gate, up, activation and product in one kernel",
                f"gate_up, bf16, one {files[0].device}; providers take turns in one process. "
                f"From 1024 tokens on: {_mean(wins):.3f} × unfused in the geometric mean",
                legend=axes[0][0])  # fmt: skip
    return figure


def _mean(ratios: list[float]) -> float:
    """The geometric mean."""
    product = 1.0
    for ratio in ratios:
        product *= ratio
    return product ** (1 / len(ratios))

