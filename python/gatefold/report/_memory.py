"""Activation memory against tokens, and the KV-cache tokens that what is saved makes room for."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from . import _style
from ._results import Missing, Results, models_of, name_of
from ._style import Theme
from ._throughput import LLAMA

GB = 1e9


def memory(results: Results, theme: Theme) -> Figure:
    """What gate_up takes beside x and the weights, as measured."""
    files = results.files([f"gate_up_{model}.json" for model in LLAMA])
    rows = [row for file in files for row in file.rows if row.get("memory_bytes") is not None]
    models = models_of(rows)
    if not models:
        raise Missing(f"{files[0].path} has no memory_bytes")
    figure, axes = _style.subplots(1, len(models), 3.4)
    for ax, model in zip(axes[0], models):
        lines = {}
        for provider, color, label in (("unfused", theme.orange, "unfused"), ("gatefold", theme.blue, "Gatefold")):
            points = sorted((r["tokens"], r["memory_bytes"] / GB) for r in rows
                            if (r["model"], r["provider"]) == (model, provider))  # fmt: skip
            lines[provider] = points
            ax.plot(*zip(*points), color=color, marker="o", label=label)
        (most, unfused), (_, ours) = lines["unfused"][-1], lines["gatefold"][-1]
        ax.fill_between([x for x, _ in lines["unfused"]], [y for _, y in lines["gatefold"]],
                        [y for _, y in lines["unfused"]], color=theme.orange, alpha=0.13, linewidth=0)  # fmt: skip
        ax.annotate(f"{unfused - ours:.1f} GB less", (most, ours + 0.33 * (unfused - ours)), xytext=(-6, 0),
                    textcoords="offset points", ha="right", va="center", fontweight="bold")  # fmt: skip
        ax.set_title(name_of(model), loc="left")
        ax.set_ylim(0, None)
        ax.set_xlim(0, most * 1.04)
        ax.set_xticks([0, 16384, 32768, 49152, 65536])
        ax.xaxis.set_major_formatter(FuncFormatter(_style.count))
        ax.set_xlabel("tokens")
    axes[0][0].set_ylabel("GB beside x and weights")
    _style.head(figure, theme, "Memory that gate_up takes",
                f"bf16, measured on one {files[0].device}: h alone, where the unfused way keeps gate and up as well",
                legend=axes[0][0])  # fmt: skip
    return figure


def kv_cache(results: Results, theme: Theme) -> Figure:
    """For every model whose cache is known: the tokens that fit into what a prefill chunk no longer needs."""
    file = results.file("memory.json", ["."])
    rows = [row for row in file.rows if row["extra_kv_tokens"] is not None]
    if not rows:
        raise Missing(f"{file.path} has no extra_kv_tokens")
    rows.sort(key=lambda row: (row["extra_kv_tokens"], row["model"]))
    figure, axes = _style.subplots(1, 1, 0.195 * len(rows) + 1.3)
    ax = axes[0][0]
    values = [row["extra_kv_tokens"] for row in rows]
    ax.barh(range(len(rows)), values, color=theme.blue, height=0.72)
    for i, (row, value) in enumerate(zip(rows, values)):
        ax.text(value, i, f"  {value}", va="center")
        ax.text(max(values) * 1.31, i, f"{row['saved_bytes'] / 2**20:.0f} MiB ÷ {row['kv_bytes_per_token'] / 1024:g} KiB",
                va="center", ha="right", color=theme.muted)  # fmt: skip
    ax.set_yticks(range(len(rows)), [row["model"] for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(0, max(values) * 1.32)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("extra tokens in the KV cache")
    chunk = rows[0]["chunk"]
    _style.head(figure, theme, "KV-cache tokens that fit into what is saved",
                f"gate and up of a prefill chunk of {chunk} tokens, {file.context['dtype']}, ÷ keys and values of a token"
                " over all layers.\nArithmetic of gatefold memory: 2 × chunk × F × 2 bytes; buffers are reused from layer"
                " to layer")  # fmt: skip
    return figure
