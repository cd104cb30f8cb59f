"""One style for every figure: two themes, the colours of the providers, titles, axes of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

WIDTH = 8.8  # inches of 96 pixels: what GitHub gives a README


@dataclass(frozen=True)
class Theme:
    """Colours that stand out from one background; the backgrounds are those of GitHub's pages."""

    name: str
    background: str
    text: str
    muted: str
    grid: str
    blue: str
    orange: str
    green: str
    purple: str
    pink: str
    slower: str  # the two ends of the speed-up's colours
    faster: str


LIGHT = Theme("light", background="#ffffff", text="#1f2328", muted="#59636e", grid="#d8dee4", blue="#0969da",
              orange="#bc4c00", green="#1a7f37", purple="#8250df", pink="#bf3989", slower="#e5793a",
              faster="#3f8fe0")  # fmt: skip
DARK = Theme("dark", background="#0d1117", text="#e6edf3", muted="#9198a1", grid="#2d333b", blue="#58a6ff",
             orange="#f0883e", green="#3fb950", purple="#bc8cff", pink="#f778ba", slower="#a34a17",
             faster="#1b65b5")  # fmt: skip
THEMES = (LIGHT, DARK)


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """matplotlib's own style files and settings have no say in it."""
    with plt.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({
            "font.family": "DejaVu Sans", "font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "gatefold",
            "figure.facecolor": theme.background, "savefig.facecolor": theme.background, "figure.dpi": 96,
            "axes.facecolor": theme.background, "axes.edgecolor": theme.grid, "axes.labelcolor": theme.text,
            "axes.titlecolor": theme.text, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.labelsize": 9,
            "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
            "grid.color": theme.grid, "grid.linewidth": 0.7, "xtick.color": theme.muted, "ytick.color": theme.muted,
            "xtick.labelcolor": theme.text, "ytick.labelcolor": theme.text, "text.color": theme.text,
            "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8, "lines.markersize": 4.5,
            "figure.constrained_layout.use": True,
        })  # fmt: skip
        yield


def subplots(rows: int, columns: int, height: float, **options: object) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    """A figure of README width; axes as [rows][columns]."""
    return plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, **options)


def head(figure: Figure, theme: Theme, title: str, subtitle: str, legend: Axes | None = None, columns: int = 4) -> None:
    """What is shown, in muted letters how it was measured, and the legend of these axes; the axes keep below."""
    height = figure.get_size_inches()[1]
    inches = 0.36 + 0.19 * (subtitle.count("\n") + 1)
    figure.text(0.008, 1 - 0.08 / height, title, fontsize=12, fontweight="bold", va="top")
    figure.text(0.008, 1 - 0.34 / height, subtitle, color=theme.muted, va="top", linespacing=1.3)
    if legend is not None:
        handles, labels = legend.get_legend_handles_labels()
        drawn = figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.008, 1 - inches / height), borderpad=0,
                              borderaxespad=0, ncols=columns, handlelength=1.8, columnspacing=1.6)  # fmt: skip
        drawn.set_in_layout(False)
        inches += 0.26
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - inches / height))


def count(value: float, _: object = None) -> str:
    """A number of tokens: 512, 4K, 64K."""
    return f"{value / 1024:g}K" if value >= 1024 else f"{value:g}"


def token_axis(axes: Axes, ticks: Sequence[int], label: str = "tokens") -> None:
    """Logarithmic, with a tick at each of these."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(count))
    axes.set_xlabel(label)


def save(figure: Figure, path: Path, title: str) -> None:
    """Without date and version, so that the same data give the same bytes."""
    metadata = {"Title": title}
    if path.suffix == ".svg":
        metadata |= {"Date": None, "Creator": "gatefold.report"}
    figure.savefig(path, metadata=metadata)
    plt.close(figure)
