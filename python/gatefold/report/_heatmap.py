"""How many times as fast as the unfused pair: models x tokens."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from . import _style
from ._results import Results, cells, models_of
from ._style import Theme
from ._throughput import gate_up_rows

FEW = [72, 128, 200, 256, 512]
WORST, BEST = 1 / 1.25, 1.25  # where the colours end


def _paint(ax: Axes, theme: Theme, ratios: dict[tuple[str, int], float], models: list[str], tokens: list[int]) -> None:
    """One cell for each pair, with its number."""
    colours = LinearSegmentedColormap.from_list("speed-up", [theme.slower, theme.background, theme.faster])
    values = np.array([[math.log(ratios.get((model, t), math.nan)) for t in tokens] for model in models])
    ax.pcolormesh(values, cmap=colours, norm=Normalize(math.log(WORST), math.log(BEST)), edgecolors=theme.background,
                  linewidth=1)  # fmt: skip
    for row, model in enumerate(models):
        for column, t in enumerate(tokens):
            if (model, t) in ratios:
                ax.text(column + 0.5, row + 0.48, f"{ratios[model, t]:.2f}", ha="center", va="center", fontsize=8)
    ax.set_xticks(np.arange(len(tokens)) + 0.5, [_style.count(t) for t in tokens])
    ax.set_yticks(np.arange(len(models)) + 0.5, models)
    ax.invert_yaxis()
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def speedup(results: Results, theme: Theme) -> Figure:
    """Every model with few tokens, in two columns, and below the three Llama sizes with all that were measured."""
    file = results.file("gate_up_models.json")
    llama = gate_up_rows(results)
    ratios = {cell: providers["gatefold"]["ratio_vs_unfused"]
              for cell, providers in cells([*file.rows, *llama]).items()}  # fmt: skip
    largest = models_of(llama)
    others = sorted(set(models_of(file.rows)) - set(largest))
    half = (len(others) + 1) // 2
    tokens = sorted({t for model, t in ratios if model in largest})
    figure = _style.plt.figure(figsize=(_style.WIDTH, 0.235 * (half + 2 * len(largest)) + 2.3))
    # Of the many counts the Llama sizes have, two rows of cells.
    grid = figure.add_gridspec(3, 2, height_ratios=[half, len(largest), len(largest)])
    _paint(figure.add_subplot(grid[0, 0]), theme, ratios, others[:half], FEW)
    _paint(figure.add_subplot(grid[0, 1]), theme, ratios, others[half:], FEW)
    middle = (len(tokens) + 1) // 2
    _paint(figure.add_subplot(grid[1, :]), theme, ratios, largest, tokens[:middle])
    _paint(figure.add_subplot(grid[2, :]), theme, ratios, largest, tokens[middle:])
    lost = sum(ratio < 1 for ratio in ratios.values())
    _style.head(figure, theme, "How many times as fast as the unfused pair",
                f"gate_up, bf16, one {file.device}: models × tokens. Blue: faster, orange: slower"
                f" ({lost} of {len(ratios)} cells)")  # fmt: skip
    return figure
