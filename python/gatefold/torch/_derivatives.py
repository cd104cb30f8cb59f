"""The backward's element-wise part and its products, in torch's own operations.

Derivatives are computed in float32 (float64 for float64) and rounded once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._how import How


def split(pre: tuple[Tensor, ...], how: How) -> tuple[Tensor, Tensor]:
    """gate and up [T, F] of pre-activations: two matrices, or views of one [T, 2F] as the layout has them."""
    if how.layout in (None, "separate"):
        return pre[0], pre[1]
    columns = pre[0].shape[-1] // 2
    block = how.block or columns
    halves = pre[0].view(-1, columns // max(block, 1), 2, block)
    first, second = (halves[:, :, i].reshape(-1, columns) for i in (0, 1))
    return (second, first) if how.layout.endswith("up_gate") else (first, second)


def join(gate: Tensor, up: Tensor, how: How) -> tuple[Tensor, ...]:
    """What split takes apart."""
    if how.layout in (None, "separate"):
        return gate, up
    columns = gate.shape[-1]
    block = how.block or columns
    parts = (up, gate) if how.layout.endswith("up_gate") else (gate, up)
    blocks = [part.view(-1, columns // max(block, 1), block) for part in parts]
    return (torch.stack(blocks, 2).view(-1, 2 * columns),)


def of_act_and_mul(dh: Tensor, gate: Tensor, up: Tensor, how: How) -> tuple[Tensor, Tensor]:
    """The gradients of gate and up where h = act(gate) * up has gradient dh."""
    dtype = gate.dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    dh, gate, up = dh.to(wide), gate.to(wide), up.to(wide)
    if how.activation == "swiglu_clamped":
        d_gate, d_up = _of_swiglu_clamped(dh, gate, up, how)
    else:
        value, slope = _ACTIVATIONS[how.activation](gate)
        d_gate, d_up = dh * up * slope, dh * value
    return d_gate.to(dtype), d_up.to(dtype)


def _of_swiglu_clamped(dh: Tensor, gate: Tensor, up: Tensor, how: How) -> tuple[Tensor, Tensor]:
    clamped, linear = gate.clamp(max=how.limit), up.clamp(-how.limit, how.limit)
    sigma = torch.sigmoid(how.alpha * clamped)
    slope = sigma * (1 + how.alpha * clamped * (1 - sigma))
    d_gate = torch.where(gate <= how.limit, dh * (linear + how.beta) * slope, 0)
    d_up = torch.where(up.abs() <= how.limit, dh * clamped * sigma, 0)
    return d_gate, d_up


# Each: the value and the slope of an activation, neither with a cancellation in the negative tail.


def _silu(g: Tensor) -> tuple[Tensor, Tensor]:
    sigma = torch.sigmoid(g)
    return g * sigma, sigma * (1 + g * torch.sigmoid(-g))


def _gelu_tanh(g: Tensor) -> tuple[Tensor, Tensor]:
    # g/2 (1 + tanh z) = g sigma(2z), z = sqrt(2/pi) (g + 0.044715 g^3)
    root = 2 * math.sqrt(2 / math.pi)
    twice_z = root * (g + 0.044715 * g * g * g)
    sigma = torch.sigmoid(twice_z)
    slope_of_twice_z = root * (1 + 3 * 0.044715 * g * g)
    return g * sigma, sigma * (1 + g * torch.sigmoid(-twice_z) * slope_of_twice_z)


def _gelu_erf(g: Tensor) -> tuple[Tensor, Tensor]:
    phi = 0.5 * torch.erfc(g * -math.sqrt(0.5))
    density = torch.exp(-0.5 * g * g) * (1 / math.sqrt(2 * math.pi))
    return g * phi, phi + g * density


def _relu(g: Tensor) -> tuple[Tensor, Tensor]:
    return g.relu(), (g > 0).to(g.dtype)


def _sigmoid(g: Tensor) -> tuple[Tensor, Tensor]:
    sigma = torch.sigmoid(g)
    return sigma, sigma * torch.sigmoid(-g)


def _identity(g: Tensor) -> tuple[Tensor, Tensor]:
    return g, torch.ones_like(g)


_ACTIVATIONS = {
    "silu": _silu, "gelu_tanh": _gelu_tanh, "gelu_erf": _gelu_erf, "relu": _relu, "sigmoid": _sigmoid,
    "identity": _identity,
}  # fmt: skip


def of_input(d_out: tuple[Tensor, ...], weights: tuple[Tensor, ...]) -> Tensor:
    """The gradient [T, D] of x where each x . weight^T has a gradient [T, F]."""
    total = d_out[0] @ weights[0]
    return total if len(d_out) == 1 else torch.addmm(total, d_out[1], weights[1])


def of_weight(d_out: Tensor, x: Tensor) -> Tensor:
    """The gradient [F, D] of weight in x . weight^T."""
    return d_out.t() @ x


def of_bias(d_out: Tensor) -> Tensor:
    """The gradient [F] of a bias."""
    wide = torch.float64 if d_out.dtype == torch.float64 else torch.float32
    return d_out.sum(0, dtype=wide).to(d_out.dtype)
