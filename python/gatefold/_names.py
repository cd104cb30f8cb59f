"""Layouts and activations by name, without NumPy."""

from __future__ import annotations

from typing import NamedTuple

from . import _c


class SwigluClamped(NamedTuple):
    """g' = min(g, limit), u' = clamp(u, -limit, limit), g' sigma(alpha g') (u' + beta). gpt-oss has the defaults."""

    limit: float = 7.0
    alpha: float = 1.702
    beta: float = 1.0


def _known(name: str, value: object, known: dict[str, int]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}: {value!r}, not one of {', '.join(known)}")
    return value


def _activation(activation: object) -> tuple[str, float, float, float]:
    if activation == "swiglu_clamped":
        activation = SwigluClamped()
    if isinstance(activation, SwigluClamped):
        return ("swiglu_clamped", *activation)
    return _known("activation", activation, _c.ACTIVATIONS), 0.0, 0.0, 0.0
