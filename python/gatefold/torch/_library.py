"""The private operators torch.ops.gatefold.*: their schemas, and their shapes for tensors without data.

What computes is C++ (libgatefold_torch.so); it has no backward, so a raw call with a tensor that requires a gradient
would lose that gradient silently. The public functions are the way in.
"""

from __future__ import annotations

from pathlib import Path

import torch

from .. import _c

# `how` says the rest ("layout=gate_up;activation=silu"; torch_ops/how.hpp has its grammar).
_SCHEMAS = {
    "_act_and_mul": "Tensor gate, Tensor? up, str how",
    "_gemm": "Tensor x, Tensor weight, Tensor? bias, str how",
    "_gemm_gated": "Tensor x, Tensor gate, Tensor weight, Tensor? bias, str how",
    "_gate_up": "Tensor x, Tensor gate, Tensor? up, Tensor? gate_bias, Tensor? up_bias, str how",
    "_mlp": "Tensor x, Tensor gate, Tensor? up, Tensor down, Tensor? gate_bias, Tensor? up_bias, Tensor? down_bias, "
            "str how",
}  # fmt: skip


def _columns_of_act_and_mul(gate, up, *rest):
    return gate, gate.shape[-1] if up is not None else gate.shape[-1] // 2


def _columns_of_gemm(x, weight, *rest):
    return x, weight.shape[0]


def _columns_of_gemm_gated(x, gate, weight, *rest):
    return x, weight.shape[0]


def _columns_of_gate_up(x, gate, up, *rest):
    return x, gate.shape[0] if up is not None else gate.shape[0] // 2


def _columns_of_mlp(x, *rest):
    return x, x.shape[-1]


# What an output is like, and how many columns it has.
_COLUMNS = {
    "_act_and_mul": _columns_of_act_and_mul,
    "_gemm": _columns_of_gemm,
    "_gemm_gated": _columns_of_gemm_gated,
    "_gate_up": _columns_of_gate_up,
    "_mlp": _columns_of_mlp,
}


def _require_like(names: list[str], arguments: tuple) -> None:
    """What C++ refuses too, but here when a graph is made, or where a tensor without data is among the others."""
    first = arguments[0]
    for name, argument in zip(names, arguments):
        if not isinstance(argument, torch.Tensor):
            continue
        if argument.dtype != first.dtype:
            raise RuntimeError(f"{name}: dtype {argument.dtype}, but {names[0]} has {first.dtype}")
        if argument.device != first.device:
            raise RuntimeError(f"{name}: on {argument.device}, but {names[0]} is on {first.device}")


def _fakes(name: str, arguments: str):
    """The operator's two forms for tensors without data."""
    names = [argument.split()[1] for argument in f"{arguments}, Tensor out".split(", ")]

    def with_new_output(*given):
        _require_like(names, given)
        like, columns = _COLUMNS[name](*given)
        return like.new_empty((*like.shape[:-1], columns))

    def with_output(*given):
        _require_like(names, given)

    return with_new_output, with_output


def _define() -> torch.library.Library:
    library = torch.library.Library("gatefold", "DEF")
    for name, arguments in _SCHEMAS.items():
        with_new_output, with_output = _fakes(name, arguments)
        library.define(f"{name}({arguments}) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
        library.define(f"{name}_out({arguments}, Tensor(a!) out) -> ()", tags=torch.Tag.pt2_compliant_tag)
        torch.library.register_fake(f"gatefold::{name}", with_new_output, lib=library)
        torch.library.register_fake(f"gatefold::{name}_out", with_output, lib=library)
    return library


library = _define()
torch.ops.load_library(Path(_c.NATIVE, "libgatefold_torch.so"))


class operators:  # noqa: N801  (a namespace)
    """The operators without the look-up that torch.ops makes on every call."""

    act_and_mul, act_and_mul_out = torch.ops.gatefold._act_and_mul.default, torch.ops.gatefold._act_and_mul_out.default
    gemm, gemm_out = torch.ops.gatefold._gemm.default, torch.ops.gatefold._gemm_out.default
    gemm_gated, gemm_gated_out = torch.ops.gatefold._gemm_gated.default, torch.ops.gatefold._gemm_gated_out.default
    gate_up, gate_up_out = torch.ops.gatefold._gate_up.default, torch.ops.gatefold._gate_up_out.default
    mlp, mlp_out = torch.ops.gatefold._mlp.default, torch.ops.gatefold._mlp_out.default


class eager:  # noqa: N801  (a namespace)
    """The operators without the Python frame of their own that OpOverload's call has, 0.2 us. For torch.compile they
    are unknown functions: where is_traced() says so `operators` has to be called."""

    act_and_mul, gemm, gemm_gated, gate_up, mlp = (
        getattr(op, "_op", op)
        for op in (operators.act_and_mul, operators.gemm, operators.gemm_gated, operators.gate_up, operators.mlp)
    )


# torch.compile knows it as a constant.
is_traced = torch.compiler.is_dynamo_compiling
