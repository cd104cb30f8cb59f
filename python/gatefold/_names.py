"""Layouts and activations by name, without NumPy."""

from __future__ import annotations

import math
import operator
from numbers import Real
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


def _whole(name: str, value: object) -> int:
    """Not what ctypes makes of it: 2**64 + 8 would be 8."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: {value!r}, not a whole number") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name}: {number}, not a number of 64 bits")
    return number


_LARGEST_FLOAT = float.fromhex("0x1.fffffep127")


def _figure(name: str, value: object) -> float:
    """A number that fp32 has, rounded, or an infinity."""
    if not isinstance(value, Real):
        raise ValueError(f"{name}: {value!r}, not a number")
    number = float(value)
    if math.isfinite(number) and abs(number) > _LARGEST_FLOAT:
        raise ValueError(f"{name}: {number}, beyond fp32's {_LARGEST_FLOAT:.7g}")
    return number


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {value!r}, not True or False")
    return value


def _implementation(implementation: object) -> str | None:
    """A name, or None. The library's strings end at a zero."""
    if implementation is not None and (not isinstance(implementation, str) or "\0" in implementation):
        raise ValueError(f"implementation: {implementation!r}, not a name or None")
    return implementation


def _activation(activation: object) -> tuple[str, float, float, float]:
    if isinstance(activation, str) and activation == "swiglu_clamped":
        activation = SwigluClamped()
    if isinstance(activation, SwigluClamped):
        return ("swiglu_clamped", *map(_figure, SwigluClamped._fields, activation))
    return _known("activation", activation, _c.ACTIVATIONS), 0.0, 0.0, 0.0
