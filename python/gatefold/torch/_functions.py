"""The public functions: the operators, with gradients and autocast where they are asked for."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import Activation, Layout
from . import _autograd, _library
from ._how import how, how_activated, known_ways
from ._state import mark_written, needs_gradient, require_output, under_autocast

# Bound once: a call of a small block is all look-ups.
_raw, _eager, _is_traced = _library.operators, _library.eager, _library.is_traced
_is_autocast_on = torch._C._is_any_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled


def act_and_mul(gate: Tensor, up: Tensor | None = None, *, layout: Layout, activation: Activation, block: int = 0,
                out: Tensor | None = None, implementation: str | None = None) -> Tensor:  # fmt: skip
    """act(gate) * up, element by element.

    gate, up: [..., F]; packed layouts: gate [..., 2F], its halves among the columns. Returns [..., F].
    `out` may be gate or up itself in the separate layout.
    Raises ValueError for names that are none, RuntimeError for tensors that don't fit.
    """
    try:
        way = known_ways[layout, block, activation, implementation, False]
    except (KeyError, TypeError):  # unknown, or what can't be a key
        way = how(layout, block, activation, implementation)
    if out is not None:
        require_output(out, gate=gate, up=up)
        _raw.act_and_mul_out(gate, up, way.text, out)
        return mark_written(out)
    if (_is_grad_enabled() or forward_ad._current_level >= 0) and needs_gradient(gate, up):
        return _autograd.act_and_mul(gate, up, way)
    return (_raw if _is_traced() else _eager).act_and_mul(gate, up, way.text)


def gemm_gated(x: Tensor, gate: Tensor, weight: Tensor, *, activation: Activation, bias: Tensor | None = None,
               out: Tensor | None = None, implementation: str | None = None,
               batch_invariant: bool = False) -> Tensor:  # fmt: skip
    """act(gate) * (x . weight^T + bias), with finished gate values.

    x: [..., D], gate: [..., F], weight: [F, D], bias: [F]. Returns [..., F].
    Raises ValueError for names that are none, RuntimeError for tensors that don't fit.
    """
    try:
        way = known_ways[activation, implementation, batch_invariant]
    except (KeyError, TypeError):
        way = how_activated(activation, implementation, batch_invariant)
    if _is_autocast_on():
        x, gate, weight, bias = under_autocast(x, gate, weight, bias)
    if out is not None:
        require_output(out, x=x, gate=gate, weight=weight, bias=bias)
        _raw.gemm_gated_out(x, gate, weight, bias, way.text, out)
        return mark_written(out)
    if (_is_grad_enabled() or forward_ad._current_level >= 0) and needs_gradient(x, gate, weight, bias):
        return _autograd.gemm_gated(x, gate, weight, bias, way)
    return (_raw if _is_traced() else _eager).gemm_gated(x, gate, weight, bias, way.text)


def gate_up(x: Tensor, gate: Tensor, up: Tensor | None = None, *, layout: Layout, activation: Activation,
            block: int = 0, gate_bias: Tensor | None = None, up_bias: Tensor | None = None, out: Tensor | None = None,
            implementation: str | None = None, save_pre_activations: bool = False,
            batch_invariant: bool = False) -> Tensor:  # fmt: skip
    """act(x . gate^T + gate_bias) * (x . up^T + up_bias).

    x: [..., D], gate, up: [F, D], gate_bias, up_bias: [F]. Packed layouts: gate [2F, D] and gate_bias [2F], bias j for
    row j; up and up_bias are None. Returns [..., F].

    Where a gradient is asked for, the backward computes gate and up before the activation again from x;
    save_pre_activations keeps them instead (2F elements per token), for which the forward computes them in memory,
    rounded, and then act_and_mul.
    batch_invariant: a row of the forward's result has the same bits whatever other rows there are, and however many.
    Raises ValueError for names that are none, RuntimeError for tensors that don't fit.
    """
    try:
        way = known_ways[layout, block, activation, implementation, batch_invariant]
    except (KeyError, TypeError):  # unknown, or what can't be a key
        way = how(layout, block, activation, implementation, batch_invariant)
    if _is_autocast_on():
        x, gate, up, gate_bias, up_bias = under_autocast(x, gate, up, gate_bias, up_bias)
    if out is not None:
        require_output(out, x=x, gate=gate, up=up, gate_bias=gate_bias, up_bias=up_bias)
        _raw.gate_up_out(x, gate, up, gate_bias, up_bias, way.text, out)
        return mark_written(out)
    if (_is_grad_enabled() or forward_ad._current_level >= 0) and needs_gradient(x, gate, up, gate_bias, up_bias):
        found = _autograd.gate_up(x, gate, up, gate_bias, up_bias, way, save_pre_activations)
        return found[0] if save_pre_activations else found
    return (_raw if _is_traced() else _eager).gate_up(x, gate, up, gate_bias, up_bias, way.text)


def mlp(x: Tensor, gate: Tensor, up: Tensor | None, down: Tensor, *, layout: Layout, activation: Activation,
        block: int = 0, gate_bias: Tensor | None = None, up_bias: Tensor | None = None,
        down_bias: Tensor | None = None, out: Tensor | None = None, implementation: str | None = None,
        save_pre_activations: bool = False, batch_invariant: bool = False) -> Tensor:  # fmt: skip
    """gate_up's result h, then h . down^T + down_bias: the whole block.

    As gate_up, and down: [D, F], down_bias: [D]. Returns [..., D].
    """
    try:
        way = known_ways[layout, block, activation, implementation, batch_invariant]
    except (KeyError, TypeError):  # unknown, or what can't be a key
        way = how(layout, block, activation, implementation, batch_invariant)
    tensors = (x, gate, up, down, gate_bias, up_bias, down_bias)
    if _is_autocast_on():
        tensors = under_autocast(*tensors)
    if out is not None:
        names = ("x", "gate", "up", "down", "gate_bias", "up_bias", "down_bias")
        require_output(out, **dict(zip(names, tensors)))
        _raw.mlp_out(*tensors, way.text, out)
        return mark_written(out)
    if (_is_grad_enabled() or forward_ad._current_level >= 0) and needs_gradient(*tensors):
        found = _autograd.mlp(*tensors, way, save_pre_activations)
        return found[0] if save_pre_activations else found
    return (_raw if _is_traced() else _eager).mlp(*tensors, way.text)
