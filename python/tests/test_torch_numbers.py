"""Every operation on tensors against the double-precision truth, under gatefold_check's componentwise bound."""

import numpy as np
import pytest
import torch
from support import ACTIVATIONS, PACKED, report
from torch_support import DTYPES, D, F, Poisoned, T, apart, as_numpy, seeded

import gatefold.torch
from gatefold import _ops

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
activations = pytest.mark.parametrize("activation", ACTIVATIONS)
layouts = pytest.mark.parametrize("layout", ["separate", *PACKED])


def assert_within_bound(call_of, function, tensors, columns, biases=None, **options):
    """Without out=, with it, and with more leading dimensions: the same bits, within the bound."""
    biases = biases or {}
    first = tensors[0]
    poisoned = Poisoned((*first.shape[:-1], columns), first.dtype)
    assert function(*tensors, out=poisoned.out, **biases, **options) is poisoned.out
    poisoned.assert_frame_untouched()
    arrays = [as_numpy(tensor) for tensor in tensors]
    vectors = {name: as_numpy(bias) for name, bias in biases.items()}
    found, _ = report(call_of(*arrays, **vectors, **options), as_numpy(poisoned.out.contiguous()))
    assert found.violations == 0, f"{found.max_bound_ratio} of the bound at {found.worst_row}, {found.worst_column}"
    assert torch.equal(function(*tensors, **biases, **options), poisoned.out)


def block_of(layout):
    return 4 if layout.startswith("interleaved") else 0


def weights_of(layout, dtype):
    """gate, up and the biases of both, as the layout has them."""
    if layout == "separate":
        gate, up, gate_bias, up_bias = seeded([(F, D), (F, D), (F,), (F,)], dtype)
        return apart(gate), apart(up), {"gate_bias": gate_bias, "up_bias": up_bias}
    gate, gate_bias = seeded([(2 * F, D), (2 * F,)], dtype)
    return apart(gate), None, {"gate_bias": gate_bias}


@dtypes
@activations
@layouts
def test_act_and_mul(dtype, activation, layout):
    halves = [(T, F), (T, F)] if layout == "separate" else [(T, 2 * F)]
    tensors = [apart(tensor) for tensor in seeded(halves, dtype, 1.0)]
    options = {"layout": layout, "block": block_of(layout), "activation": activation}
    assert_within_bound(_ops._act_and_mul, gatefold.torch.act_and_mul, tensors, F, **options)


@dtypes
@activations
@pytest.mark.parametrize("with_bias", [False, True])
def test_gemm_gated(dtype, activation, with_bias):
    x, gate, weight, bias = seeded([(T, D), (T, F), (F, D), (F,)], dtype)
    tensors = [apart(tensor) for tensor in (x, gate, weight)]
    biases = {"bias": bias} if with_bias else {}
    assert_within_bound(_ops._gemm_gated, gatefold.torch.gemm_gated, tensors, F, biases, activation=activation)


@dtypes
@activations
@layouts
@pytest.mark.parametrize("with_biases", [False, True])
def test_gate_up(dtype, activation, layout, with_biases):
    gate, up, biases = weights_of(layout, dtype)
    (x,) = seeded([(T, D)], dtype)
    options = {"layout": layout, "block": block_of(layout), "activation": activation}
    assert_within_bound(_ops._gate_up, gatefold.torch.gate_up, (apart(x), gate, up), F, biases if with_biases else {},
                        **options)  # fmt: skip


@dtypes
@layouts
@pytest.mark.parametrize("with_biases", [False, True])
def test_mlp_is_the_library_s(dtype, layout, with_biases):
    """It has no bound of its own; on NumPy arrays it is held to its stages' bounds, and here to its bits there."""
    gate, up, biases = weights_of(layout, dtype)
    x, down, down_bias = seeded([(T, D), (D, F), (D,)], dtype)
    x, down = apart(x), apart(down)
    biases = {**biases, "down_bias": down_bias} if with_biases else {}
    options = {"layout": layout, "block": block_of(layout), "activation": "gelu_tanh"}
    poisoned = Poisoned((T, D), dtype)
    gatefold.torch.mlp(x, gate, up, down, out=poisoned.out, **biases, **options)
    poisoned.assert_frame_untouched()
    arrays = [as_numpy(tensor) for tensor in (x, gate, up, down)]
    expected = gatefold.mlp(*arrays, **{name: as_numpy(bias) for name, bias in biases.items()}, **options)
    assert np.array_equal(as_numpy(poisoned.out).astype(np.float64), expected.astype(np.float64))
    assert torch.equal(gatefold.torch.mlp(x, gate, up, down, **biases, **options), poisoned.out)
