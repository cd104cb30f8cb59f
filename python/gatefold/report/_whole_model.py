"""A Llama-shaped model as a whole: stock, compiled, patched."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import _style
from ._results import Results
from ._style import Theme

PROVIDERS = {"stock": "orange", "compiled": "muted", "patched": "blue", "patched, compiled": "purple"}


def _rate(value: float) -> str:
    return f" {value / 1000:.1f}K" if value >= 10000 else f" {value:.0f}"


def whole_model(results: Results, theme: Theme) -> Figure:
    """Tokens a second of prefill and of decoding, and peak memory; over the stock model's, and memory."""
    file = results.file("llama_shaped.json", ["h200", "h100"])
    phases = list(dict.fromkeys((row["phase"], row["batch"], row["tokens"]) for row in file.rows))
    figure, axes = _style.subplots(1, 2, 3.6, width_ratios=[1.6, 1])
    speed, memory = axes[0]
    width = 0.8 / len(PROVIDERS)
    for i, (provider, color) in enumerate(PROVIDERS.items()):
        for group, (phase, batch, tokens) in enumerate(phases):
            for row in file.of(phase=phase, batch=batch, tokens=tokens, provider=provider):
                x = group + (i - (len(PROVIDERS) - 1) / 2) * width
                label = provider if group == 0 else None
                speed.bar(x, row["ratio_vs_stock"], width * 0.92, color=getattr(theme, color), label=label)
                speed.text(x, row["ratio_vs_stock"], _rate(row["tokens_per_second"]), ha="center", va="bottom",
                           fontsize=8, rotation=90)  # fmt: skip
                memory.bar(x, (row["activation_bytes"] or 0) / 1e6, width * 0.92, color=getattr(theme, color))
    names = [f"{phase}\n{batch} × {tokens}" for phase, batch, tokens in phases]
    for ax in (speed, memory):
        ax.set_xticks(range(len(phases)), names)
        ax.grid(axis="x", visible=False)
    speed.margins(y=0.25)
    speed.set_ylabel("times as fast as stock")
    speed.set_title("speed (the numbers: tokens a second)", loc="left")
    memory.set_ylabel("MB")
    memory.set_title("peak beside weights and cache", loc="left")
    context = file.context
    _style.head(figure, theme, "A whole Llama-shaped model",
                f"{context['layers']} layers of {context['hidden_size']} × {context['intermediate_size']}, random weights, bf16, one {file.device};"
                " decoding in a CUDA graph", legend=speed)  # fmt: skip
    return figure
