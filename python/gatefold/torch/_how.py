"""The arguments that are no tensors: checked, and as the operators' one string."""

from __future__ import annotations

from typing import NamedTuple

from .. import _c
from .._names import _activation, _implementation, _known, _whole


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


# By how's arguments, and by how_activated's.
known_ways: dict[tuple, How] = {}
_MOST_WAYS = 1024


def how(layout: object, block: object, activation: object, implementation: object) -> How:
    """The arguments checked. Raises ValueError for what is no layout, activation, block or name."""
    layout, block = _known("layout", layout, _c.LAYOUTS), _whole("block", block)
    return _kept((layout, block, activation, implementation), layout, block, activation, implementation)


def how_activated(activation: object, implementation: object) -> How:
    """The same for an operation without halves."""
    return _kept((activation, implementation), None, 0, activation, implementation)


def _kept(key: tuple, layout: str | None, block: int, activation: object, implementation: object) -> How:
    made = _make(layout, block, activation, _implementation(implementation))
    if len(known_ways) < _MOST_WAYS:
        known_ways[key] = made
    return made


def _make(layout: str | None, block: int, activation: object, implementation: str | None) -> How:
    parts = []
    if layout is not None:
        parts.append(f"layout={layout}")
    if block != 0:
        parts.append(f"block={block}")
    name, limit, alpha, beta = _activation(activation)
    parts.append(f"activation={name}")
    if name == "swiglu_clamped":
        parts.append(f"limit={limit};alpha={alpha};beta={beta}")
    freely = ";".join(parts)
    text = freely if implementation is None else f"{freely};implementation={implementation}"
    return How(layout, block, name, limit, alpha, beta, text, freely)
