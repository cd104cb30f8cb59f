"""Decoding: a whole mlp for few tokens, against the time of merely reading its weights."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import _style
from ._results import Missing, Results, Row, models_of, name_of
from ._style import Theme


def _ours(rows: list[Row]) -> str:
    """What the library chose, or the family that was forced."""
    providers = dict.fromkeys(row["provider"] for row in rows)
    for provider in providers:
        if provider == "gatefold" or provider.startswith("decode"):
            return provider
    raise Missing("mlp_decode.json has no row of gatefold's")


def decode(results: Results, theme: Theme) -> Figure:
    """Over the unfused chain, and the share of the read bandwidth; one column for each model."""
    file = results.file("mlp_decode.json")
    ours = _ours(file.rows)
    models = models_of(file.rows)
    figure, axes = _style.subplots(2, len(models), 4.6, sharex=True, sharey="row")
    for top, bottom, model in zip(axes[0], axes[1], models):
        for provider, color, marker, label in (("cublaslt", theme.orange, "^", "cuBLASLt, act_and_mul, cuBLASLt"),
                                               (ours, theme.blue, "o", "Gatefold")):  # fmt: skip
            rows = sorted(file.of(model=model, provider=provider), key=lambda row: row["tokens"])
            for ax, key in ((top, "ratio_vs_unfused"), (bottom, "fraction_of_read_bandwidth")):
                ax.plot([row["tokens"] for row in rows], [row[key] for row in rows], color=color, marker=marker,
                        label=label)  # fmt: skip
        bottom.axhline(1, color=theme.text, linewidth=1)
        top.set_title(name_of(model), loc="left")
        _style.token_axis(bottom, [1, 4, 16, 64])
    axes[0][0].set_ylabel("times as fast as\nthe cuBLASLt chain")
    axes[1][0].set_ylabel("time to read the\nweights ÷ time")
    _style.head(figure, theme, "Decoding at the speed of memory",
                f"mlp, bf16, in a CUDA graph over rotating weights, one {file.device}", legend=axes[0][0])  # fmt: skip
    return figure
