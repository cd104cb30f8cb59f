"""The operations on NumPy arrays."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from . import _c
from ._arrays import (
    Operand, aligned_bytes, bias_vector, input_operand, output_operand, require_array, require_matrix, require_shape,
)  # fmt: skip
from ._names import _activation, _implementation, _known, _truth, _whole
from ._plan import Description, plan_for


class _Call(NamedTuple):
    """One run: its description, and the arguments by gatefold_args' names."""

    description: Description
    tokens: int
    operands: dict[str, Operand]
    biases: dict[str, np.ndarray]

    def c_args(self, workspace: np.ndarray | None = None) -> _c.Args:
        """The arguments as the library reads them; they point into this object's arrays."""
        args = _c.Args(struct_size=ctypes.sizeof(_c.Args), tokens=self.tokens)
        for name, operand in self.operands.items():
            setattr(args, name, operand.pointer)
        for name, bias in self.biases.items():
            setattr(args, name, bias.ctypes.data)
        if workspace is not None:
            args.workspace, args.workspace_size = workspace.ctypes.data, workspace.size
        return args

    def run(self) -> np.ndarray:
        """The output, computed."""
        plan = plan_for(self.description)
        workspace = aligned_bytes(plan.workspace_size(self.tokens))
        plan.run(self.c_args(workspace))
        return self.operands["out"].array


def _half(name: str, length: int, layout: str) -> int:
    """The length of one half of `length` rows or columns."""
    if layout == "separate":
        return length
    if length % 2:
        raise ValueError(f"{name}: {length} of gate and up together, but layout {layout!r} has as many of each")
    return length // 2


def _require_halves(gate: np.ndarray, up: object, layout: object) -> np.ndarray | None:
    """`up` as the layout has it: a second matrix of gate's shape, or none."""
    if _known("layout", layout, _c.LAYOUTS) == "separate":
        if up is None:
            raise ValueError("up: None, but layout 'separate' has two matrices")
        up = require_matrix("up", up, gate, "gate")
        require_shape("up", up, gate.shape, "gate")
        return up
    if up is not None:
        raise ValueError(f"up: an argument, but layout {layout!r} has both halves in gate")
    return None


def _call(op, like, like_name, sizes, out_shape, inputs, out, *, layout=None, block=0, activation=None, biases=None,
          implementation=None, batch_invariant=False) -> _Call:  # fmt: skip
    """sizes: (D, F). biases: name -> (vector or None, length)."""
    operands = {name: input_operand(array) for name, array in inputs.items() if array is not None}
    operands["out"] = output_operand(out, out_shape, like, like_name)
    vectors = {
        name: bias_vector(name, bias, length, like, like_name)
        for name, (bias, length) in (biases or {}).items()
        if bias is not None
    }
    name, limit, alpha, beta = _activation(activation) if activation is not None else (None, 0.0, 0.0, 0.0)
    ld = {name: operand.ld for name, operand in operands.items()}
    description = Description(
        op, like.dtype.name, layout, _whole("block", block), name, limit, alpha, beta, *sizes,
        *(ld.get(name, 0) for name in ("x", "gate", "up", "down", "out")),
        sum(_c.BIASES[name] for name in vectors), _implementation(implementation),
        _truth("batch_invariant", batch_invariant),
    )  # fmt: skip
    return _Call(description, out_shape[0], operands, vectors)


def _act_and_mul(gate, up=None, *, layout, activation, block=0, out=None, implementation=None) -> _Call:
    gate = require_matrix("gate", gate)
    up = _require_halves(gate, up, layout)
    shape = (gate.shape[0], _half("gate", gate.shape[1], layout))
    return _call("act_and_mul", gate, "gate", (0, shape[1]), shape, {"gate": gate, "up": up}, out, layout=layout,
                 block=block, activation=_named(activation), implementation=implementation)  # fmt: skip


def _gemm(x, weight, *, bias=None, out=None, **options) -> _Call:
    x = require_matrix("x", x)
    weight = require_matrix("weight", weight, x)
    rows = weight.shape[0]
    require_shape("weight", weight, (rows, x.shape[1]), f"x of shape {x.shape}")
    return _call("gemm", x, "x", (x.shape[1], rows), (x.shape[0], rows), {"x": x, "up": weight}, out,
                 biases={"up_bias": (bias, rows)}, **options)  # fmt: skip


def _gemm_gated(x, gate, weight, *, activation, bias=None, out=None, **options) -> _Call:
    x = require_matrix("x", x)
    gate = require_matrix("gate", gate, x)
    weight = require_matrix("weight", weight, x)
    rows = weight.shape[0]
    shape = (x.shape[0], rows)
    require_shape("weight", weight, (rows, x.shape[1]), f"x of shape {x.shape}")
    require_shape("gate", gate, shape, f"x of shape {x.shape} with weight of shape {weight.shape}")
    return _call("gemm_gated", x, "x", (x.shape[1], rows), shape, {"x": x, "gate": gate, "up": weight}, out,
                 activation=_named(activation), biases={"up_bias": (bias, rows)}, **options)  # fmt: skip


def _gate_up(x, gate, up=None, *, layout, activation, block=0, gate_bias=None, up_bias=None, out=None,
             **options) -> _Call:  # fmt: skip
    x, gate, up, f = _weights(x, gate, up, layout)
    return _call("gate_up", x, "x", (x.shape[1], f), (x.shape[0], f), {"x": x, "gate": gate, "up": up}, out,
                 layout=layout, block=block, activation=_named(activation),
                 biases=_half_biases(gate, gate_bias, up_bias, layout), **options)  # fmt: skip


def _mlp(x, gate, up, down, *, layout, activation, block=0, gate_bias=None, up_bias=None, down_bias=None, out=None,
         **options) -> _Call:  # fmt: skip
    x, gate, up, f = _weights(x, gate, up, layout)
    d = x.shape[1]
    down = require_matrix("down", down, x)
    require_shape("down", down, (d, f), f"gate of shape {gate.shape} in layout {layout!r}")
    biases = {**_half_biases(gate, gate_bias, up_bias, layout), "down_bias": (down_bias, d)}
    return _call("mlp", x, "x", (d, f), x.shape, {"x": x, "gate": gate, "up": up, "down": down}, out, layout=layout,
                 block=block, activation=_named(activation), biases=biases, **options)  # fmt: skip


def _named(activation: object) -> object:
    if activation is None:
        raise ValueError(f"activation: None, not one of {', '.join(_c.ACTIVATIONS)}")
    return activation


def _weights(x, gate, up, layout) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    x = require_matrix("x", x)
    gate = require_matrix("gate", gate, x)
    up = _require_halves(gate, up, layout)
    require_shape("gate", gate, (gate.shape[0], x.shape[1]), f"x of shape {x.shape}")
    return x, gate, up, _half("gate", gate.shape[0], layout)


def _half_biases(gate, gate_bias, up_bias, layout) -> dict[str, tuple[object, int]]:
    if layout != "separate" and up_bias is not None:
        raise ValueError(f"up_bias: an argument, but layout {layout!r} has both halves' biases in gate_bias")
    rows = gate.shape[0]
    if up_bias is not None:
        require_array("up_bias", up_bias)
    return {"gate_bias": (gate_bias, rows), "up_bias": (up_bias, rows)}
