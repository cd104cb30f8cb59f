"""Differentiable forms of the operators, for calls in which a gradient is asked for.

The backward needs the pre-activations, gate and up before the activation. It computes them again from x, which alone is
then saved, or keeps those that the forward computed (save_pre_activations). Either way they are rounded to the
element type. The products with the weights' rows are Gatefold's; those that run along columns, where a copy of the
transposed weight would be needed, are torch's.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor
from torch.autograd import Function

from . import _derivatives as derivatives
from . import _library
from ._how import How

raw, eager, _is_traced = _library.operators, _library.eager, _library.is_traced
_is_transformed = torch._C._are_functorch_transforms_active


class _NoSecondDerivative(Function):
    """Passes the gradients on, and refuses to be differentiated itself."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name, count, *tensors):
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.name = inputs[0]

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError(f"gatefold.torch.{ctx.name}: its backward was differentiated, but there are first "
                                  "derivatives alone")  # fmt: skip


def _once(name: str, gradients: tuple[Tensor | None, ...], *sources: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients, such that a second backward through them is refused rather than wrong."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return gradients
    given = [gradient for gradient in gradients if gradient is not None]
    guarded = iter(_NoSecondDerivative.apply(name, len(given), *given, *sources))
    return tuple(None if gradient is None else next(guarded) for gradient in gradients)


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _pre_activations(x, gate, up, gate_bias, up_bias, product: str = "") -> tuple[Tensor, ...]:
    """gate and up before the activation: [..., F] each, or [..., 2F] of a packed weight."""
    first = raw.gemm(x, gate, gate_bias, product)
    return (first,) if up is None else (first, raw.gemm(x, up, up_bias, product))


def _activated(pre: tuple[Tensor, ...], how: How) -> Tensor:
    return raw.act_and_mul(pre[0], pre[1] if len(pre) == 2 else None, how.freely)


def _gradients_of_gate_up(needed, dh, x, weights, pre, how):
    """Of x, gate, up, gate_bias, up_bias, as far as needed, where h has the gradient dh [T, F]."""
    d_pre = derivatives.join(*derivatives.of_act_and_mul(dh, *derivatives.split(pre, how), how), how)
    dx = derivatives.of_input(d_pre, weights).view_as(x) if needed[0] else None
    x = _rows(x)
    second = d_pre[1] if len(d_pre) == 2 else None
    d_weights = (derivatives.of_weight(d, x) if need else None for need, d in zip(needed[1:3], (d_pre[0], second)))
    d_biases = (derivatives.of_bias(d) if need else None for need, d in zip(needed[3:5], (d_pre[0], second)))
    return dx, *d_weights, *d_biases


def _save_with_pre_activations(ctx, inputs, output):
    """Saves the tensors among the inputs, and the pre-activations where forward has returned them after its result."""
    *tensors, ctx.how, save = inputs
    pre = output[1:] if save else ()
    if save:
        ctx.mark_non_differentiable(*pre)
    ctx.save_for_backward(*tensors, *pre)


class ActAndMul(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(gate, up, how):
        return raw.act_and_mul(gate, up, how.text)

    @staticmethod
    def setup_context(ctx, inputs, output):
        gate, up, ctx.how = inputs
        ctx.save_for_backward(gate, up)

    @staticmethod
    def backward(ctx, dh):
        gate, up = ctx.saved_tensors
        with torch.no_grad():
            halves = (gate,) if up is None else (gate, up)
            parts = derivatives.split(tuple(_rows(half) for half in halves), ctx.how)
            found = derivatives.join(*derivatives.of_act_and_mul(_rows(dh), *parts, ctx.how), ctx.how)
            found = tuple(gradient.view_as(half) for gradient, half in zip(found, halves))
        return *_once("act_and_mul", (*found, None)[:2], dh, *halves), None


class GemmGated(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, gate, weight, bias, how):
        return raw.gemm_gated(x, gate, weight, bias, how.text)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, gate, weight, bias, ctx.how = inputs
        ctx.save_for_backward(x, gate, weight, bias)

    @staticmethod
    def backward(ctx, dh):
        x, gate, weight, bias = ctx.saved_tensors
        need_x, need_gate, need_weight, need_bias = ctx.needs_input_grad[:4]
        with torch.no_grad():
            up = raw.gemm(x, weight, bias, "")
            d_gate, d_up = derivatives.of_act_and_mul(_rows(dh), _rows(gate), _rows(up), ctx.how)
            found = (
                derivatives.of_input((d_up,), (weight,)).view_as(x) if need_x else None,
                d_gate.view_as(gate) if need_gate else None,
                derivatives.of_weight(d_up, _rows(x)) if need_weight else None,
                derivatives.of_bias(d_up) if need_bias else None,
            )
        return *_once("gemm_gated", found, dh, x, gate, weight), None


class GateUp(Function):
    """forward returns h; where pre-activations are saved h and then those."""

    generate_vmap_rule = True

    @staticmethod
    def forward_and_save(ctx, x, gate, up, gate_bias, up_bias, how, save):
        if save:
            return _forward_and_save(GateUp, ctx, (x, gate, up, gate_bias, up_bias, how, save))
        h = eager.gate_up(x, gate, up, gate_bias, up_bias, how.text)
        ctx.how = how
        ctx.save_for_backward(x, gate, up, gate_bias, up_bias)
        return h

    @staticmethod
    def forward(x, gate, up, gate_bias, up_bias, how, save):
        if not save:
            return raw.gate_up(x, gate, up, gate_bias, up_bias, how.text)
        pre = _pre_activations(x, gate, up, gate_bias, up_bias, how.product)
        return _activated(pre, how), *pre

    @staticmethod
    def setup_context(ctx, inputs, output):
        _save_with_pre_activations(ctx, inputs, output)

    @staticmethod
    def backward(ctx, dh, *_):
        x, gate, up, gate_bias, up_bias, *pre = ctx.saved_tensors
        weights = (gate,) if up is None else (gate, up)
        with torch.no_grad():
            pre = pre or _pre_activations(x, gate, up, gate_bias, up_bias)
            pre = tuple(_rows(half) for half in pre)
            found = _gradients_of_gate_up(ctx.needs_input_grad, _rows(dh), x, weights, pre, ctx.how)
        return *_once("gate_up", found, dh, x, *weights), None, None


class Mlp(Function):
    """forward returns y; where pre-activations are saved y and then those."""

    generate_vmap_rule = True

    @staticmethod
    def forward_and_save(ctx, x, gate, up, down, gate_bias, up_bias, down_bias, how, save):
        if save:
            return _forward_and_save(Mlp, ctx, (x, gate, up, down, gate_bias, up_bias, down_bias, how, save))
        y = eager.mlp(x, gate, up, down, gate_bias, up_bias, down_bias, how.text)
        ctx.how = how
        ctx.save_for_backward(x, gate, up, down, gate_bias, up_bias, down_bias)
        return y

    @staticmethod
    def forward(x, gate, up, down, gate_bias, up_bias, down_bias, how, save):
        if not save:
            return raw.mlp(x, gate, up, down, gate_bias, up_bias, down_bias, how.text)
        pre = _pre_activations(x, gate, up, gate_bias, up_bias, how.product)
        return raw.gemm(_activated(pre, how), down, down_bias, how.product), *pre

    @staticmethod
    def setup_context(ctx, inputs, output):
        _save_with_pre_activations(ctx, inputs, output)

    @staticmethod
    def backward(ctx, dy, *_):
        x, gate, up, down, gate_bias, up_bias, _, *pre = ctx.saved_tensors
        need_x, need_gate, need_up, need_down, need_gate_bias, need_up_bias, need_down_bias, *_ = ctx.needs_input_grad
        needed = (need_x, need_gate, need_up, need_gate_bias, need_up_bias)
        weights = (gate,) if up is None else (gate, up)
        with torch.no_grad():
            rows_of_dy = _rows(dy)
            d_down_bias = derivatives.of_bias(rows_of_dy) if need_down_bias else None
            pre = pre or _pre_activations(x, gate, up, gate_bias, up_bias)
            d_down = derivatives.of_weight(rows_of_dy, _rows(_activated(pre, ctx.how))) if need_down else None
            dx = d_gate = d_up = d_gate_bias = d_up_bias = None
            if any(needed):
                dh = derivatives.of_input((rows_of_dy,), (down,))
                pre = tuple(_rows(half) for half in pre)
                dx, d_gate, d_up, d_gate_bias, d_up_bias = _gradients_of_gate_up(needed, dh, x, weights, pre, ctx.how)
        found = (dx, d_gate, d_up, d_down, d_gate_bias, d_up_bias, d_down_bias)
        return *_once("mlp", found, dy, x, *weights, down), None, None


def _forward_and_save(form: type[Function], ctx, arguments: tuple):
    output = form.forward(*arguments)
    form.setup_context(ctx, arguments, output)
    return output


def _applied(form: type[Function]) -> Callable:
    """form.apply, by the fastest way there is.

    A forward with a context is 20 us faster a call than the separate setup_context, but functorch's transforms take the
    latter alone. Of what Function.apply does in Python before the C call, 1.8 us under torch 2.11, nothing is needed
    here: no default arguments, no transforms.
    """

    def forward(ctx, *arguments):
        return _forward_and_save(form, ctx, arguments)

    forward = getattr(form, "forward_and_save", forward)
    members = {"forward": staticmethod(forward), "backward": staticmethod(form.backward)}
    direct = type(form.__name__, (Function,), members)
    apply_directly = super(Function, direct).apply

    def apply(*arguments):
        if _is_transformed() or _is_traced():
            return form.apply(*arguments)
        return apply_directly(*arguments)

    return apply


act_and_mul = _applied(ActAndMul)
gemm_gated = _applied(GemmGated)
gate_up = _applied(GateUp)
mlp = _applied(Mlp)
