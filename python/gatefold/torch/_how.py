"""The arguments that are no tensors: checked, and as the operators' one string."""

from __future__ import annotations

from typing import NamedTuple

from .. import _c
from .._names import _activation, _known


class How(NamedTuple):
    """What a call computes beside its tensors.

    `text` is what the operators take; `freely` is the same without the implementation that was forced, for the other
    operations of a backward.
    """

    layout: str | None
    block: int
    activation: str
    limit: float
    alpha: float
    beta: float
    text: str
    freely: str


# By layout, block, activation and implementation, as how() takes them.
known_ways: dict[tuple, How] = {}
_MOST_WAYS = 1024


def how(layout: str | None, block: int, activation: object, implementation: str | None) -> How:
    """The arguments checked. Raises ValueError for what is no layout or activation."""
    made = _make(layout, block, activation, implementation)
    if len(known_ways) < _MOST_WAYS:
        known_ways[layout, block, activation, implementation] = made
    return made


def _make(layout: str | None, block: int, activation: object, implementation: str | None) -> How:
    parts = []
    if layout is not None:
        parts.append(f"layout={_known('layout', layout, _c.LAYOUTS)}")
    if block != 0:
        parts.append(f"block={block:d}")
    name, limit, alpha, beta = _activation(activation)
    parts.append(f"activation={name}")
    if name == "swiglu_clamped":
        parts.append(f"limit={float(limit)};alpha={float(alpha)};beta={float(beta)}")
    freely = ";".join(parts)
    text = freely if implementation is None else f"{freely};implementation={implementation}"
    return How(layout, block, name, limit, alpha, beta, text, freely)
