"""Every operation against the double-precision truth, under gatefold_check's componentwise bound: no violation."""

import numpy as np
import pytest
from support import ACTIVATIONS, DTYPES, PACKED, Poisoned, generator, normal, report, split, strided

import gatefold
from gatefold import _ops

T, D, F = 5, 67, 24
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
activations = pytest.mark.parametrize("activation", ACTIVATIONS)


def biases_of(rng, dtype, **lengths):
    return {name: normal(rng, length, dtype) for name, length in lengths.items()}


def assert_within_bound(call_of, function, arguments, shape, dtype, **options):
    poisoned = Poisoned(shape, dtype)
    assert function(*arguments, out=poisoned.out, **options) is poisoned.out
    poisoned.assert_frame_untouched()
    found, truth = report(call_of(*arguments, out=poisoned.out, **options))
    assert found.violations == 0, f"{found.max_bound_ratio} of the bound at {found.worst_row}, {found.worst_column}"
    assert np.array_equal(function(*arguments, **options), poisoned.out)  # a packed output is the same, bit for bit
    return truth


@dtypes
@activations
@pytest.mark.parametrize("with_biases", [False, True])
def test_gate_up_separate(dtype, activation, with_biases):
    rng = generator()
    x, gate, up = (strided(normal(rng, shape, dtype, 0.3)) for shape in ((T, D), (F, D), (F, D)))
    biases = biases_of(rng, dtype, gate_bias=F, up_bias=F) if with_biases else {}
    options = {"layout": "separate", "activation": activation, **biases}
    assert_within_bound(_ops._gate_up, gatefold.gate_up, (x, gate, up), (T, F), dtype, **options)


@dtypes
@pytest.mark.parametrize("layout", PACKED)
def test_gate_up_packed_is_the_separate_one(dtype, layout):
    rng = generator()
    block = 4 if layout.startswith("interleaved") else 0
    x, weight = normal(rng, (T, D), dtype, 0.3), strided(normal(rng, (2 * F, D), dtype))
    options = {"layout": layout, "block": block, "activation": "silu", "gate_bias": normal(rng, 2 * F, dtype)}
    truth = assert_within_bound(_ops._gate_up, gatefold.gate_up, (x, weight), (T, F), dtype, **options)
    # The truth above trusts the library's reading of the layout; this one is NumPy's alone.
    (gate, up), (gate_bias, up_bias) = (
        split(array.astype(np.float64), layout, block, 0) for array in (weight, options["gate_bias"])
    )
    wide = x.astype(np.float64)
    g = wide @ gate.T + gate_bias
    expected = g / (1 + np.exp(-g)) * (wide @ up.T + up_bias)
    # Both are in double precision: sums of D products differ by at most about D 2^-53 of their terms' magnitudes.
    terms = (np.abs(wide) @ np.abs(gate.T) + np.abs(gate_bias) + 1) * (np.abs(wide) @ np.abs(up.T) + np.abs(up_bias) + 1)
    assert (np.abs(truth - expected) <= 4 * (D + 16) * 2.0**-53 * terms).all()


@dtypes
@activations
@pytest.mark.parametrize("layout", ["separate", *PACKED])
def test_act_and_mul(dtype, activation, layout):
    rng = generator()
    block = 8 if layout.startswith("interleaved") else 0
    arguments = (strided(normal(rng, (T, F), dtype)), strided(normal(rng, (T, F), dtype)))
    if layout != "separate":
        arguments = (strided(normal(rng, (T, 2 * F), dtype)),)
    options = {"layout": layout, "block": block, "activation": activation}
    assert_within_bound(_ops._act_and_mul, gatefold.act_and_mul, arguments, (T, F), dtype, **options)


@dtypes
@pytest.mark.parametrize("with_bias", [False, True])
def test_gemm(dtype, with_bias):
    rng = generator()
    x, weight = strided(normal(rng, (T, D), dtype)), strided(normal(rng, (F, D), dtype))
    options = biases_of(rng, dtype, bias=F) if with_bias else {}
    assert_within_bound(_ops._gemm, gatefold.gemm, (x, weight), (T, F), dtype, **options)


@dtypes
@activations
@pytest.mark.parametrize("with_bias", [False, True])
def test_gemm_gated(dtype, activation, with_bias):
    rng = generator()
    x, gate, weight = (strided(normal(rng, shape, dtype)) for shape in ((T, D), (T, F), (F, D)))
    options = {"activation": activation, **(biases_of(rng, dtype, bias=F) if with_bias else {})}
    assert_within_bound(_ops._gemm_gated, gatefold.gemm_gated, (x, gate, weight), (T, F), dtype, **options)


@dtypes
@pytest.mark.parametrize("with_biases", [False, True])
@pytest.mark.parametrize("layout", ["separate", *PACKED])
def test_mlp_is_gate_up_then_gemm(dtype, layout, with_biases):
    """mlp has no bound of its own: its two stages have, and it gives their bits."""
    rng = generator()
    block = 4 if layout.startswith("interleaved") else 0
    halves = 1 if layout == "separate" else 2
    x, gate, down = (strided(normal(rng, s, dtype, 0.3)) for s in ((T, D), (halves * F, D), (D, F)))
    up = strided(normal(rng, (F, D), dtype)) if layout == "separate" else None
    biases = biases_of(rng, dtype, gate_bias=halves * F) if with_biases else {}
    if with_biases and layout == "separate":
        biases |= biases_of(rng, dtype, up_bias=F)
    down_bias = normal(rng, D, dtype) if with_biases else None
    options = {"layout": layout, "block": block, "activation": "gelu_tanh", **biases}
    poisoned = Poisoned((T, D), dtype)
    gatefold.mlp(x, gate, up, down, down_bias=down_bias, out=poisoned.out, **options)
    poisoned.assert_frame_untouched()
    h = gatefold.gate_up(x, gate, up, **options)
    assert report(_ops._gate_up(x, gate, up, out=h, **options))[0].violations == 0
    found = report(_ops._gemm(h, down, bias=down_bias, out=poisoned.out))[0]
    assert found.violations == 0, f"{found.max_bound_ratio} of the bound at {found.worst_row}, {found.worst_column}"


def test_clamped_figures_are_the_callers():
    rng = generator()
    gate, up = (normal(rng, (T, F), np.float32, 3.0) for _ in range(2))
    for clamp in (gatefold.SwigluClamped(), gatefold.SwigluClamped(1.5, 1.0, 0.25)):
        g = np.minimum(gate.astype(np.float64), clamp.limit)
        u = np.clip(up.astype(np.float64), -clamp.limit, clamp.limit)
        alpha = float(np.float32(clamp.alpha))
        expected = g / (1 + np.exp(-alpha * g)) * (u + clamp.beta)
        found = gatefold.act_and_mul(gate, up, layout="separate", activation=clamp)
        # act_and_mul's bound, u|h| + 2^-20 |h| with u = 2^-24, doubled for the activation's negative tail.
        assert (np.abs(found - expected) <= 2 * (2.0**-24 + 2.0**-20) * np.abs(expected)).all()
