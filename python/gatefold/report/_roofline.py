"""Each op under the roof of what the chip was measured to do at best."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import _style
from ._results import Missing, Results, Row
from ._style import Theme

MODEL = "llama3.1-8b"
ACT_FLOPS = 5  # counted for an element of act_and_mul: exponential, sum, division, two products
LABELS = [128, 256, 512, 1024, 4096, 65536]


def _points(rows: list[Row], provider: str) -> list[tuple[float, float, int]]:
    """(FLOP per byte, TFLOP/s, tokens) in the order of tokens."""
    wanted = [row for row in rows if row["provider"] == provider and row["model"] == MODEL and row["dtype"] == "bf16"]
    return [(row["tflops"] / row["gbps"] * 1e3, row["tflops"], row["tokens"])
            for row in sorted(wanted, key=lambda row: row["tokens"])]  # fmt: skip


def roofline(results: Results, theme: Theme) -> Figure:
    """Llama 8B's products from few tokens to many, and act_and_mul."""
    names = ["tensor_cores.json", "act_and_mul.json", "gate_up_small_t.json", f"gate_up_{MODEL}.json", "gemm_gated.json"]
    cores, elementwise, few, many, gated = results.files(names)
    peak = max(row["teraflops"] for row in cores.rows if row["loop"] == "wgmma bf16")
    bandwidth = max(row["gbps"] for row in elementwise.rows) * 1e-3  # TB/s
    passes = [row for row in elementwise.of(provider="gatefold", dtype="bf16")]
    if not passes:
        raise Missing(f"{elementwise.path} has no bf16 row of gatefold's")
    figure, axes = _style.subplots(1, 2, 4.2, width_ratios=[1, 1.35])
    series = [
        ("gate_up", _points([*few.rows, *many.rows], "gatefold"), theme.blue, "o"),
        ("unfused pair of gate_up", _points([*few.rows, *many.rows], "unfused"), theme.orange, "^"),
        ("gemm: product alone", _points(gated.rows, "gemm"), theme.green, "s"),
        ("gemm_gated", _points(gated.rows, "gatefold:sm90"), theme.purple, "D"),
    ]
    rates = [(ACT_FLOPS / 6, row["gbps"] * 1e-3 * ACT_FLOPS / 6) for row in passes]  # 6 bytes: gate and up in, h out
    for ax in axes[0]:
        ax.plot([0.4, peak / bandwidth, 2e4], [0.4 * bandwidth, peak, peak], color=theme.muted, linewidth=1.4)
        for label, points, color, marker in series:
            if points:
                ax.plot([x for x, _, _ in points], [y for _, y, _ in points], color=color, marker=marker, label=label)
        ax.plot(*zip(*rates), color=theme.pink, marker="v", markersize=7, linestyle="none", label="act_and_mul")
        ax.set_xscale("log")
        ax.set_xlabel("FLOP per byte that must move")
    whole, near = axes[0]
    whole.set_title("every op", loc="left")
    whole.set_yscale("log")
    whole.set_xlim(0.4, 2e4)
    whole.set_ylim(1.5, peak * 1.8)
    whole.set_ylabel("TFLOP/s")
    whole.text(1.6, 1.6 * bandwidth * 0.42, f"{bandwidth:.2f} TB/s, the\nfastest pass", color=theme.muted)
    near.set_title("the products, closer", loc="left")
    near.set_xlim(90, 9e3)
    near.set_ylim(350, peak * 1.07)
    near.text(8.5e3, peak * 1.015, f"{peak:.0f} TFLOP/s: tensor cores alone, nothing copied", color=theme.muted, ha="right")
    for x, y, tokens in series[0][1]:
        if tokens in LABELS:
            near.annotate(_style.count(tokens), (x, y), xytext=(0, 7), textcoords="offset points", ha="center",
                          color=theme.blue, fontsize=8)  # fmt: skip
    _style.head(figure, theme, "Under the roof",
                f"bf16, one {cores.device}: Llama 3.1 8B, 128 to 65536 tokens (numbers in blue); act_and_mul counted as"
                f" {ACT_FLOPS} FLOP an element.\nThe roof is what the chip was measured to do", legend=whole, columns=5)  # fmt: skip
    return figure
