"""Swap-FFN's step, beside its unfused form and its products alone."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import _style
from ._results import File, Missing, Results
from ._style import Theme

PROVIDERS = [("unfused", "orange", "unfused: every operation a pass"), ("gatefold", "blue", "Gatefold"),
             ("gemm", "muted", "the MLPs' products alone")]  # fmt: skip


def _files(results: Results) -> dict[str, list[File]]:
    """A machine's name -> its files."""
    found: dict[str, list[File]] = {}
    for machine in ("cpu", "h100", "h200"):
        for name in ("swap_ffn.json", "swap_ffn_fp16.json", "swap_ffn_fp32.json"):
            try:
                file = results.file(name, [machine])
            except Missing:
                continue
            found.setdefault(file.device, []).append(file)
    if not found:
        raise Missing(f"no swap_ffn.json below {results.folder}")
    return found


def swap_ffn(results: Results, theme: Theme) -> Figure:
    """Steps a second over those of the unfused way; the bars' numbers are TFLOP/s. One panel for each machine."""
    machines = _files(results)
    widths = {device: len({(row["dtype"], row["batch"]) for file in files for row in file.rows})
              for device, files in machines.items()}  # fmt: skip
    crowded = sum(widths.values()) > 5
    figure, axes = _style.subplots(1, len(machines), 3.6, width_ratios=list(widths.values()))
    for ax, (device, files) in zip(axes[0], machines.items()):
        rows = [row for file in files for row in file.rows]
        groups = list(dict.fromkeys((row["dtype"], row["batch"]) for row in rows))
        for i, (provider, color, label) in enumerate(PROVIDERS):
            for group, (dtype, batch) in enumerate(groups):
                for row in rows:
                    if (row["dtype"], row["batch"], row["provider"]) == (dtype, batch, provider):
                        x = group + (i - 1) * 0.27
                        ratio = row["ratio_vs_unfused"]
                        ax.bar(x, ratio, 0.25, color=getattr(theme, color), label=label if group == 0 else None)
                        ax.text(x, ratio, f" {row['tflops']:.3g}", ha="center", va="bottom", fontsize=8,
                                rotation=90 if crowded else 0)  # fmt: skip
        ax.set_xticks(range(len(groups)), [f"{dtype}\nB = {batch}" for dtype, batch in groups])
        ax.set_title(device, loc="left")
        ax.margins(y=0.16 if crowded else 0.09)
        ax.grid(axis="x", visible=False)
    axes[0][0].set_ylabel("times as fast as unfused")
    row = next(iter(machines.values()))[0].rows[0]
    _style.head(figure, theme, "Swap-FFN: a decode step built on the gated MLP",
                f"D {row['hidden_size']}, F {row['intermediate_size']}, {row['cores']} cores, {row['events']} events of"
                f" {row['k_ffn']} MLPs; the bars' numbers are TFLOP/s", legend=axes[0][0])  # fmt: skip
    return figure
