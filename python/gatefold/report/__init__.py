"""Figures of what was measured, from the JSON that the repository holds: `python -m gatefold.report results -o FOLDER`.

Every figure is written as NAME-light.svg and NAME-dark.svg. The same files give the same bytes: no date, no random
names. A figure whose data are missing is left out, with a line that says which file it wants. Needs matplotlib
(`pip install gatefold[report]`).
"""

from __future__ import annotations

from ._figures import FIGURES, draw
from ._results import Missing, Results

__all__ = ["FIGURES", "Missing", "Results", "draw"]
