"""Arrays as they come: strides, copies, empty ones, in place, plans, and refusals that name both values."""

import ctypes
import multiprocessing
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from support import Poisoned, generator, normal, wrong_options

import gatefold
from gatefold import _ops, _plan

T, D, F = 3, 8, 6
SILU = {"layout": "separate", "activation": "silu"}


def block(rng, dtype=np.float32):
    return normal(rng, (T, D), dtype), normal(rng, (F, D), dtype), normal(rng, (F, D), dtype), normal(rng, (D, F), dtype)


def test_rows_with_a_stride_are_not_copied():
    rng = generator()
    wide = normal(rng, (F, 2 * D), np.float32)
    x, _, up, _ = block(rng)
    call = _ops._gate_up(x, wide[:, :D], up, **SILU)
    assert np.shares_memory(call.operands["gate"].array, wide)
    assert call.description.ld_gate == 2 * D


@pytest.mark.parametrize(
    "view",
    [lambda a: np.asfortranarray(a), lambda a: a[::-1].copy()[::-1], lambda a: np.repeat(a, 2, 1)[:, ::2],
     lambda a: a.copy()[:, ::-1].copy()[:, ::-1]],
    ids=["columns first", "rows backwards", "every second column", "columns backwards"],
)  # fmt: skip
def test_what_has_no_dense_rows_is_copied(view):
    rng = generator()
    x, gate, up, down = block(rng)
    expected = gatefold.mlp(x, gate, up, down, **SILU)
    assert np.array_equal(gatefold.mlp(view(x), view(gate), view(up), view(down), **SILU), expected)


def test_a_broadcast_and_an_unaligned_input_are_copied():
    rng = generator()
    x, gate, up, _ = block(rng)
    same_rows = np.broadcast_to(x[:1], (T, D))
    memory = np.zeros(gate.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(np.float32).reshape(gate.shape)
    unaligned[...] = gate
    expected = gatefold.gate_up(same_rows.copy(), gate, up, **SILU)
    assert np.array_equal(gatefold.gate_up(same_rows, unaligned, up, **SILU), expected)


def test_empty_sizes():
    rng = generator()
    x, gate, up, down = block(rng)
    assert gatefold.mlp(x[:0], gate, up, down, **SILU).shape == (0, D)
    assert gatefold.gate_up(x, gate[:0], up[:0], **SILU).shape == (T, 0)
    poisoned = Poisoned((T, D), np.float32)
    gatefold.mlp(x, gate[:0], up[:0], down[:, :0], out=poisoned.out, **SILU)
    assert (poisoned.out == 0).all()  # empty sums
    poisoned.assert_frame_untouched()


def test_act_and_mul_in_place():
    rng = generator()
    gate, up = normal(rng, (T, F), np.float32), normal(rng, (T, F), np.float32)
    expected = gatefold.act_and_mul(gate, up, **SILU)
    over = up.copy()
    assert gatefold.act_and_mul(gate, over, out=over, **SILU) is over
    assert np.array_equal(over, expected)


def test_one_plan_per_description_and_number_of_threads():
    x, gate, up, _ = block(generator())
    description = _ops._gate_up(x, gate, up, **SILU).description
    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_threads()
    try:
        openmp.omp_set_num_threads(1)
        one = _plan.plan_for(description)
        assert _plan.plan_for(description._replace()) is one
        openmp.omp_set_num_threads(2)
        assert _plan.plan_for(description) is not one
    finally:
        openmp.omp_set_num_threads(before)
    assert _plan.plan_for(description._replace(ld_gate=2 * D)) is not one


def test_forked_processes_compute():
    """A pool forked after a call: its processes don't have OpenMP's threads."""
    rng = generator()
    x, gate, up, down = (normal(rng, shape, np.float32) for shape in ((64, D), (F, D), (F, D), (D, F)))
    expected = gatefold.mlp(x, gate, up, down, **SILU)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        calls = [pool.apply_async(gatefold.mlp, (x, gate, up, down), SILU) for _ in range(4)]
        for call in calls:
            assert np.array_equal(call.get(timeout=60), expected)


def test_the_implementation_can_be_forced(monkeypatch):
    x, gate, up, _ = block(generator())
    description = _ops._gate_up(x, gate, up, implementation="reference", **SILU).description
    assert _plan.plan_for(description).implementation(T) == "reference"
    free = description._replace(implementation=None)
    assert _plan.plan_for(free).implementation(T) != "reference"
    monkeypatch.setenv("GATEFOLD_IMPL", "reference")
    assert _plan.plan_for(free).implementation(T) == "reference"
    with pytest.raises(gatefold.InvalidArgument, match="no such way"):
        gatefold.gate_up(x, gate, up, implementation="no such way", **SILU)


def refusals():
    x, gate, up, down = block(np.random.default_rng(0))
    half = x.astype(np.float16)
    yield "dtypes", TypeError, r"gate: dtype float32, but x has float16", lambda: gatefold.gate_up(half, gate, up, **SILU)
    yield "float64", TypeError, r"x: dtype float64, not one of", lambda: gatefold.gemm(x.astype(float), gate)
    yield "byte order", TypeError, r"x: dtype >f4", lambda: gatefold.gemm(x.astype(">f4"), gate)
    yield "list", TypeError, r"x: list, not a NumPy array", lambda: gatefold.gemm([[1.0]], gate)
    yield "dimensions", ValueError, r"x: 1 dimensions, shape \(8,\), not 2", lambda: gatefold.gemm(x[0], gate)
    yield "transposed", ValueError, r"weight: shape \(8, 6\).*\(3, 8\).*\(8, 8\)", lambda: gatefold.gemm(x, gate.T)
    yield "up", ValueError, r"up: shape \(5, 8\).*\(6, 8\)", lambda: gatefold.gate_up(x, gate, up[:5], **SILU)
    yield "down", ValueError, r"down: shape \(6, 8\).*\(8, 6\)", lambda: gatefold.mlp(x, gate, up, down.T, **SILU)
    yield "gate", ValueError, r"gate: shape \(3, 8\).*\(3, 6\)", lambda: gatefold.gemm_gated(x, x, gate, activation="silu")
    yield "bias", ValueError, r"bias: shape \(5,\).*\(6,\)", lambda: gatefold.gemm(x, gate, bias=gate[0, :5])
    yield "layout", ValueError, r"layout: 'halves', not one of separate", lambda: gatefold.gate_up(
        x, gate, up, layout="halves", activation="silu")  # fmt: skip
    yield "activation", ValueError, r"activation: 'tanh', not one of silu", lambda: gatefold.gate_up(
        x, gate, up, layout="separate", activation="tanh")  # fmt: skip
    yield "no up", ValueError, r"up: None, but layout 'separate'", lambda: gatefold.gate_up(x, gate, **SILU)
    yield "an up too many", ValueError, r"up: an argument, but layout 'gate_up'", lambda: gatefold.gate_up(
        x, gate, up, layout="gate_up", activation="silu")  # fmt: skip
    yield "odd rows", ValueError, r"gate: 5 of gate and up together", lambda: gatefold.gate_up(
        x, gate[:5], layout="gate_up", activation="silu")  # fmt: skip
    yield "block", gatefold.InvalidArgument, r"block", lambda: gatefold.gate_up(
        x, gate, layout="interleaved_gate_up", block=2, activation="silu")  # fmt: skip
    frozen = np.zeros((T, F), np.float32)
    frozen.flags.writeable = False
    yield "read-only", ValueError, r"out: read-only", lambda: gatefold.gemm(x, gate, out=frozen)
    yield "out's shape", ValueError, r"out: shape \(3, 8\).*\(3, 6\)", lambda: gatefold.gemm(x, gate, out=x)
    yield "out's dtype", TypeError, r"out: dtype float16, but x has float32", lambda: gatefold.gemm(x, gate, out=half)
    yield "out's columns", ValueError, r"out: strides \(4, 12\)", lambda: gatefold.gemm(
        x, gate, out=np.zeros((F, T), np.float32).T)  # fmt: skip
    unaligned = np.zeros(4 * T * F + 1, np.uint8)[1:].view(np.float32).reshape(T, F)
    yield "out's address", ValueError, r"out: address 0x[0-9a-f]+, no multiple of the element size 4", lambda: gatefold.gemm(
        x, gate, out=unaligned)  # fmt: skip
    masked = np.ma.masked_array(x, x > 0)
    yield "masked", TypeError, r"x: a masked array", lambda: gatefold.gemm(masked, gate)
    square = np.ones((D, D), np.float32)
    yield "overlap", gatefold.InvalidArgument, r"overlaps input", lambda: gatefold.gemm(square, square, out=square)


@pytest.mark.parametrize(("error", "message", "call"), [pytest.param(*r[1:], id=r[0]) for r in refusals()])
def test_refusals_name_the_argument_and_both_values(error, message, call):
    with pytest.raises(error, match=message):
        call()


@wrong_options
def test_options_that_are_none_are_refused(options, message):
    x, gate, _, _ = block(generator())
    with pytest.raises(ValueError, match=message):
        gatefold.gate_up(x, gate, **{"layout": "gate_up", "activation": "silu", **options})


def test_bf16_is_ml_dtypes():
    x, gate, up, down = block(generator(), ml_dtypes.bfloat16)
    assert gatefold.mlp(x, gate, up, down, **SILU).dtype == ml_dtypes.bfloat16


def test_the_tool():
    done = subprocess.run([sys.executable, "-m", "gatefold", "--version"], capture_output=True, text=True, check=True)
    assert gatefold.__version__ in done.stdout
    wrong = subprocess.run([sys.executable, "-m", "gatefold", "no-such-command"], capture_output=True, check=False)
    assert wrong.returncode != 0


def test_importing_brings_no_other_package():
    """Each takes longer than all of gatefold."""
    program = "import sys, gatefold; print(sys.modules.keys() & {'torch', 'numpy', 'ml_dtypes'})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
