"""What torch's tools want to know of an operator: how torch.func.vmap batches it, and how many FLOPs it has."""

from __future__ import annotations

import math
from typing import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ._library import library, operators


def _batch_first(argument: Tensor | None, dim: int | None, size: int) -> Tensor | None:
    if argument is None:
        return None
    return argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)


def _batching(op: Callable, rows: int) -> Callable:
    """rows: so many of the first arguments have a row for each token, the others are weights and biases."""

    def rule(info, in_dims, *arguments):
        if all(dim is None for dim in in_dims[rows:]):  # more tokens, in one call
            first = (_batch_first(a, dim, info.batch_size) for a, dim in zip(arguments[:rows], in_dims))
            return op(*first, *arguments[rows:]), 0
        each = (
            op(*(a if dim is None else a.select(dim, i) for a, dim in zip(arguments, in_dims)))
            for i in range(info.batch_size)
        )
        return torch.stack(tuple(each)), 0

    return rule


# Shapes in place of tensors; as torch does it, two for a multiplication and an addition, and products alone.


def _flops_of_product(x, *weights) -> int:
    return 2 * math.prod(x) * sum(weight[0] for weight in weights if weight is not None)


def _flops_of_gemm(x, weight, *rest, **kwargs) -> int:
    return _flops_of_product(x, weight)


def _flops_of_gemm_gated(x, gate, weight, *rest, **kwargs) -> int:
    return _flops_of_product(x, weight)


def _flops_of_gate_up(x, gate, up, *rest, **kwargs) -> int:
    return _flops_of_product(x, gate, up)


def _flops_of_mlp(x, gate, up, down, *rest, **kwargs) -> int:
    return _flops_of_product(x, gate, up) + 2 * math.prod(x[:-1]) * math.prod(down)


def _register() -> None:
    rows = {"act_and_mul": 2, "gemm": 1, "gemm_gated": 2, "gate_up": 1, "mlp": 1}
    for name, count in rows.items():
        torch.library.register_vmap(f"gatefold::_{name}", _batching(getattr(operators, name), count), lib=library)
    of = torch.ops.gatefold
    register_flop_formula([of._gemm, of._gemm_out])(_flops_of_gemm)
    register_flop_formula([of._gemm_gated, of._gemm_gated_out])(_flops_of_gemm_gated)
    register_flop_formula([of._gate_up, of._gate_up_out])(_flops_of_gate_up)
    register_flop_formula([of._mlp, of._mlp_out])(_flops_of_mlp)


_register()
