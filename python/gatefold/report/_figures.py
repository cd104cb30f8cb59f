"""Every figure by its name, and the loop that draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from . import _style
from ._cpu import against_pytorch
from ._decode import decode
from ._gain import gain
from ._heatmap import speedup
from ._memory import kv_cache, memory
from ._results import Missing, Results
from ._roofline import roofline
from ._style import Theme
from ._swap_ffn import swap_ffn
from ._throughput import throughput
from ._whole_model import whole_model

# A figure's function says with Missing what it lacks.
FIGURES: dict[str, Callable[[Results, Theme], Figure]] = {
    "gain": gain,
    "throughput": throughput,
    "memory": memory,
    "kv_cache": kv_cache,
    "speedup": speedup,
    "roofline": roofline,
    "cpu": against_pytorch,
    "decode": decode,
    "swap_ffn": swap_ffn,
    "whole_model": whole_model,
}


def draw(results: Results, folder: Path, *, only: Iterable[str] | None = None, file_format: str = "svg") -> list[Path]:
    """Writes NAME-light and NAME-dark of each figure into the folder, and prints what it wrote or why it didn't.

    matplotlib-version.txt says who drew them: another version may place a letter elsewhere. Raises ValueError for a file
    that isn't a result file. Returns what was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in only or FIGURES:
        try:
            for theme in _style.THEMES:
                path = folder / f"{name}-{theme.name}.{file_format}"
                with _style.themed(theme):
                    _style.save(FIGURES[name](results, theme), path, f"Gatefold: {name}")
                written.append(path)
            print(f"{name}: {folder / name}-{{light,dark}}.{file_format}")
        except Missing as missing:
            print(f"{name}: skipped, {missing}")
    if written and file_format == "svg":
        (folder / "matplotlib-version.txt").write_text(f"{matplotlib.__version__}\n")
    return written
