"""The CPU against PyTorch."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from . import _style
from ._results import Results, models_of, name_of
from ._style import Theme


def against_pytorch(results: Results, theme: Theme) -> Figure:
    """A whole mlp: PyTorch's time over Gatefold's, one panel for each element type."""
    files = results.files([f"mlp_{dtype}.json" for dtype in ("bf16", "fp16", "fp32")], ["cpu"])
    figure, axes = _style.subplots(1, len(files), 3.5, sharey=True)
    for ax, file in zip(axes[0], files):
        ours = file.of(provider="gatefold")
        ax.axhline(1, color=theme.text, linewidth=1)
        for model, color, marker in zip(models_of(ours), (theme.blue, theme.green, theme.purple), "osD"):
            points = sorted((row["tokens"], row["ratio_vs_torch"]) for row in ours if row["model"] == model)
            ax.plot(*zip(*points), color=color, marker=marker, label=name_of(model))
        mean = math.exp(sum(math.log(row["ratio_vs_torch"]) for row in ours) / len(ours))
        ax.set_title(f"{ours[0]['dtype']}: {mean:.2f} × in the mean", loc="left")
        _style.token_axis(ax, [1, 4, 16, 64, 512])
    axes[0][0].set_ylabel("PyTorch's time ÷ Gatefold's")
    axes[0][0].set_ylim(0, 1.05 * axes[0][0].get_ylim()[1])
    context = files[0].context
    _style.head(figure, theme, "On a CPU, against PyTorch",
                f"mlp, {context['threads']} threads, {context['cpu']}, PyTorch {context['torch'].split('+')[0]},"
                " in one process. Above 1 Gatefold is faster", legend=axes[0][0])  # fmt: skip
    return figure
