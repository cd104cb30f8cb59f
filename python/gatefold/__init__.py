"""Gatefold: the gated MLP of transformers, fused, on NumPy arrays.

    gate = x . w_gate^T      x [T, D]      w_gate, w_up [F, D]
    up   = x . w_up^T
    h    = act(gate) * up    h [T, F]
    y    = h . w_down^T      w_down [D, F]      y [T, D]

The arguments that the operations share:

* Arrays are of float32, float16 or bfloat16 (package ml_dtypes), all of a call of one type; sums are accumulated in
  fp32 or better. Rows may lie apart (a slice of a wider matrix) and are read where they lie. A copy is made only of an
  input whose rows are not dense, or run backwards or into one another.
* `layout` says how the halves lie: "separate" (two matrices), or in one matrix, given as `gate` with `up` left out or
  None: "gate_up", "up_gate", "interleaved_gate_up", "interleaved_up_gate", the last two in turns of `block` rows
  (act_and_mul: columns). There is no default: a wrong guess would fail silently.
* `activation` is "silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity", "swiglu_clamped" (gpt-oss' figures) or
  `SwigluClamped(limit, alpha, beta)`.
* `out` receives the result, and is returned. It must not overlap an input, but for act_and_mul of separate halves,
  which may write over either. Without it a new array is returned.
* `implementation` forces one by its name ("reference"); None lets Gatefold choose.
* `batch_invariant=True`: a row's result has the same bits whatever other rows there are, and however many.
* Biases are vectors of the weights' type, added to the sums in fp32.

Errors name the argument and the two values that disagree, before anything is written: TypeError for what is no array of
a known type, ValueError for shapes and names, and `Error` with its subclasses for what the library refuses.

A call works on as many threads as OpenMP gives it (OMP_NUM_THREADS) and holds no lock of Python's while it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union

from . import _c
from ._c import Error, InvalidArgument, OutOfMemory, Unsupported
from ._names import SwigluClamped

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

__all__ = [
    "Activation", "Error", "InvalidArgument", "Layout", "OutOfMemory", "SwigluClamped", "Unsupported", "__version__",
    "act_and_mul", "gate_up", "gemm", "gemm_gated", "mlp",
]  # fmt: skip

__version__: str = _c.library.gatefold_version().decode()

Layout = Literal["separate", "gate_up", "up_gate", "interleaved_gate_up", "interleaved_up_gate"]
Activation = Union[
    Literal["silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity", "swiglu_clamped"], SwigluClamped
]


# _ops is imported where it is called: NumPy, which it brings, takes six times as long to import as all the rest.


def act_and_mul(gate: Array, up: Array | None = None, *, layout: Layout, activation: Activation, block: int = 0,
                out: Array | None = None, implementation: str | None = None) -> Array:  # fmt: skip
    """act(gate) * up, element by element.

    gate, up: [T, F]; packed layouts: gate [T, 2F], its halves among the columns. Returns [T, F].
    Raises TypeError, ValueError, Error.
    """
    from . import _ops

    return _ops._act_and_mul(gate, up, layout=layout, activation=activation, block=block, out=out,
                             implementation=implementation).run()  # fmt: skip


def gemm(x: Array, weight: Array, *, bias: Array | None = None, out: Array | None = None,
         implementation: str | None = None, batch_invariant: bool = False) -> Array:  # fmt: skip
    """x . weight^T + bias.

    x: [T, D], weight: [F, D], bias: [F]. Returns [T, F]. Raises TypeError, ValueError, Error.
    """
    from . import _ops

    return _ops._gemm(x, weight, bias=bias, out=out, implementation=implementation,
                      batch_invariant=batch_invariant).run()  # fmt: skip


def gemm_gated(x: Array, gate: Array, weight: Array, *, activation: Activation, bias: Array | None = None,
               out: Array | None = None, implementation: str | None = None,
               batch_invariant: bool = False) -> Array:  # fmt: skip
    """act(gate) * (x . weight^T + bias), with finished gate values.

    x: [T, D], gate: [T, F], weight: [F, D], bias: [F]. Returns [T, F]. Raises TypeError, ValueError, Error.
    """
    from . import _ops

    return _ops._gemm_gated(x, gate, weight, activation=activation, bias=bias, out=out,
                            implementation=implementation, batch_invariant=batch_invariant).run()  # fmt: skip


def gate_up(x: Array, gate: Array, up: Array | None = None, *, layout: Layout, activation: Activation, block: int = 0,
            gate_bias: Array | None = None, up_bias: Array | None = None, out: Array | None = None,
            implementation: str | None = None, batch_invariant: bool = False) -> Array:  # fmt: skip
    """act(x . gate^T + gate_bias) * (x . up^T + up_bias).

    x: [T, D], gate, up: [F, D], gate_bias, up_bias: [F]. Packed layouts: gate [2F, D] and gate_bias [2F], bias j for
    row j. Returns [T, F]. Raises TypeError, ValueError, Error.
    """
    from . import _ops

    return _ops._gate_up(x, gate, up, layout=layout, activation=activation, block=block, gate_bias=gate_bias,
                         up_bias=up_bias, out=out, implementation=implementation,
                         batch_invariant=batch_invariant).run()  # fmt: skip


def mlp(x: Array, gate: Array, up: Array | None, down: Array, *, layout: Layout, activation: Activation,
        block: int = 0, gate_bias: Array | None = None, up_bias: Array | None = None, down_bias: Array | None = None,
        out: Array | None = None, implementation: str | None = None,
        batch_invariant: bool = False) -> Array:  # fmt: skip
    """gate_up's result h, then h . down^T + down_bias: the whole block.

    As gate_up, and down: [D, F], down_bias: [D]; packed layouts: up is None. Returns [T, D].
    Raises TypeError, ValueError, Error.
    """
    from . import _ops

    return _ops._mlp(x, gate, up, down, layout=layout, activation=activation, block=block, gate_bias=gate_bias,
                     up_bias=up_bias, down_bias=down_bias, out=out, implementation=implementation,
                     batch_invariant=batch_invariant).run()  # fmt: skip
