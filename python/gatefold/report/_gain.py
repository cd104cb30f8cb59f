"""What is gained, in one picture: time and memory on a GPU, time on a CPU."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from . import _style
from ._results import File, Results, name_of
from ._style import Theme
from ._throughput import LLAMA

COMPARED = "llama3.1-70b"  # in the panel of memory


def gain(results: Results, theme: Theme) -> Figure:
    """Gatefold over the unfused pair, memory of both, and Gatefold over PyTorch."""
    files = results.files([f"gate_up_{model}.json" for model in LLAMA])
    cpu = results.file("mlp_bf16.json", ["cpu"])
    figure, axes = _style.subplots(1, 3, 2.75)
    speed, memory, torch = axes[0]
    _speed(speed, theme, files)
    _memory(memory, theme, files)
    _against_torch(torch, theme, cpu)
    _style.head(figure, theme, "What is gained",
                f"bf16. Left and middle: gate_up on one {files[0].device}, against cuBLASLt's product and a fast"
                f" act_and_mul.\nRight: a whole mlp on {cpu.context['threads']} cores, {cpu.context['cpu']},"
                f" against PyTorch {cpu.context['torch'].split('+')[0]}")  # fmt: skip
    return figure


def _speed(ax: Axes, theme: Theme, files: list[File]) -> None:
    ax.axhline(1, color=theme.text, linewidth=1)
    for file, color, marker in zip(files, (theme.muted, theme.purple, theme.blue), "^Do"):
        rows = file.of(provider="gatefold")
        ax.plot([row["tokens"] for row in rows], [row["ratio_vs_unfused"] for row in rows], color=color, marker=marker,
                label=name_of(rows[0]["model"]).removeprefix("Llama 3.1 "))  # fmt: skip
    ax.set_ylim(0.97, 1.135)
    _style.token_axis(ax, [1024, 4096, 16384, 65536])
    ax.legend(loc="upper left", ncols=3, borderpad=0, borderaxespad=0.2, handlelength=1.2, columnspacing=0.8, fontsize=8)
    ax.set_title("times as fast, Llama 3.1", loc="left")


def _memory(ax: Axes, theme: Theme, files: list[File]) -> None:
    rows = [row for file in files for row in file.rows if row["model"] == COMPARED and row.get("memory_bytes")]
    for provider, color, label in (("unfused", theme.orange, "unfused"), ("gatefold", theme.blue, "Gatefold")):
        points = [(row["tokens"], row["memory_bytes"] / 1e9) for row in rows if row["provider"] == provider]
        ax.plot(*zip(*points), color=color, marker="o")
        most, bytes_ = points[-1]
        # Above the steep line's end, and below the flat one's.
        where = (0.87 * most, bytes_) if provider == "unfused" else (most, 0.25 * bytes_)
        ax.annotate(f"{label}: {bytes_:.1f} GB ", where, ha="right", va="center", color=color)
    ax.set_ylim(0, None)
    ax.set_xticks([0, 16384, 32768, 49152, 65536])
    ax.xaxis.set_major_formatter(FuncFormatter(_style.count))
    ax.set_xlabel("tokens")
    ax.set_title(f"memory, {name_of(COMPARED)}", loc="left")


def _against_torch(ax: Axes, theme: Theme, file: File) -> None:
    ours = file.of(provider="gatefold")
    ax.axhline(1, color=theme.text, linewidth=1)
    for model, color, marker in (("smollm2-135m", theme.muted, "^"), ("llama3.2-1b", theme.purple, "D"),
                                 ("llama3.1-8b", theme.blue, "o")):  # fmt: skip
        points = sorted((row["tokens"], row["ratio_vs_torch"]) for row in ours if row["model"] == model)
        if points:
            ax.plot(*zip(*points), color=color, marker=marker, label=name_of(model).split()[-1])
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.9), high + 0.2 * (high - low))
    _style.token_axis(ax, [1, 4, 16, 64, 512])
    ax.legend(loc="upper right", ncols=3, borderpad=0, borderaxespad=0.2, handlelength=1.2, columnspacing=0.8, fontsize=8)
    ax.set_title("times as fast as PyTorch", loc="left")
