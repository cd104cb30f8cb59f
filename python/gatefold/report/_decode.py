"""Decoding: a whole mlp for few tokens, against the time of merely reading its weights."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import _style
from ._results import Missing, Results, Row, models_of, name_of
from ._style import Theme


def _series(rows: list[Row], theme: Theme) -> list[tuple[str, str, str, str]]:
    """(provider, label, colour, marker): the chain, and what the library chooses or the families that were forced."""
    forced = [p for p in dict.fromkeys(row["provider"] for row in rows) if p not in ("cublaslt", "reading", "gatefold")]
    ours = ["gatefold"] if any(row["provider"] == "gatefold" for row in rows) else [p for p in forced if ":" not in p]
    if not ours:
        raise Missing("no gatefold or implementation's rows in mlp_decode.json")
    labels = ["Gatefold"] if ours == ["gatefold"] else ours
    looks = zip(ours, labels, (theme.blue, theme.purple, theme.green, theme.pink), "oDsv")
    return [("cublaslt", "cuBLASLt, act_and_mul, cuBLASLt", theme.orange, "^"), *looks]


def decode(results: Results, theme: Theme) -> Figure:
    """Over the unfused chain, and the share of the read bandwidth; one column for each model."""
    file = results.file("mlp_decode.json")
    series = _series(file.rows, theme)
    models = models_of(file.rows)
    figure, axes = _style.subplots(2, len(models), 4.6, sharex=True, sharey="row")
    for top, bottom, model in zip(axes[0], axes[1], models):
        for provider, label, color, marker in series:
            rows = sorted(file.of(model=model, provider=provider), key=lambda row: row["tokens"])
            for ax, key in ((top, "ratio_vs_unfused"), (bottom, "fraction_of_read_bandwidth")):
                ax.plot([row["tokens"] for row in rows], [row[key] for row in rows], color=color, marker=marker,
                        label=label)  # fmt: skip
        bottom.axhline(1, color=theme.text, linewidth=1)
        top.set_title(name_of(model), loc="left")
        _style.token_axis(bottom, [1, 4, 16, 64])
    axes[0][0].set_ylabel("times as fast as\nthe cuBLASLt chain")
    axes[1][0].set_ylabel("time to read the\nweights ÷ time")
    _style.head(figure, theme, "Decoding: a whole mlp for few tokens",
                f"bf16, in a CUDA graph over rotating weights, one {file.device}", legend=axes[0][0])  # fmt: skip
    return figure
