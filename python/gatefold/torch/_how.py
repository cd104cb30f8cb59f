"""The arguments that are no tensors: checked, and as the operators' one string."""

from __future__ import annotations

from typing import NamedTuple

from .. import _c
from .._names import _activation, _implementation, _known, _truth, _whole


class How(NamedTuple):
    """What a call computes beside its tensors.

    `text` is what the operators take; `freely` is the same without the implementation that was forced and without
    batch_invariant, for the other operations of a backward; `product` is what of it a single product takes.
    """

    layout: str | None
    block: int
    activation: str
    limit: float
    alpha: float
    beta: float
    text: str
    freely: str
    product: str


# By how's arguments, and by how_activated's.
known_ways: dict[tuple, How] = {}
_MOST_WAYS = 1024


def how(layout: object, block: object, activation: object, implementation: object,
        batch_invariant: object = False) -> How:  # fmt: skip
    """The arguments checked. Raises ValueError for what is no layout, activation, block, name or truth value."""
    layout, block = _known("layout", layout, _c.LAYOUTS), _whole("block", block)
    batch_invariant = _truth("batch_invariant", batch_invariant)
    key = layout, block, activation, implementation, batch_invariant
    return _kept(key, layout, block, activation, implementation, batch_invariant)


def how_activated(activation: object, implementation: object, batch_invariant: object = False) -> How:
    """The same for an operation without halves."""
    batch_invariant = _truth("batch_invariant", batch_invariant)
    return _kept((activation, implementation, batch_invariant), None, 0, activation, implementation, batch_invariant)


def _kept(key: tuple, layout: str | None, block: int, activation: object, implementation: object,
          batch_invariant: bool) -> How:  # fmt: skip
    made = _make(layout, block, activation, _implementation(implementation), batch_invariant)
    if len(known_ways) < _MOST_WAYS:
        known_ways[key] = made
    return made


def _make(layout: str | None, block: int, activation: object, implementation: str | None,
          batch_invariant: bool) -> How:  # fmt: skip
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
    product = "batch_invariant=1" if batch_invariant else ""
    text = f"{freely};{product}" if product else freely
    if implementation is not None:  # last: its name may hold anything
        text = f"{text};implementation={implementation}"
    return How(layout, block, name, limit, alpha, beta, text, freely, product)
