"""Tensors as they come: leading dimensions, strides, copies, empty ones, in place, plans, threads, and refusals."""

import ctypes

import pytest
import torch
from support import generator, wrong_options
from torch_support import D, F, T, random, seeded

import gatefold
import gatefold.torch as gt
from gatefold import _c

SILU = {"layout": "separate", "activation": "silu"}


def block(dtype=torch.float32):
    return seeded([(T, D), (F, D), (F, D), (D, F)], dtype)


@pytest.mark.parametrize("leading", [(), (1,), (3, 2), (1, 3, 1, 2), (0,), (2, 0, 3)])
def test_leading_dimensions(leading):
    _, gate, up, down = block()
    (x,) = seeded([(*leading, D)], torch.float32)
    flat = x.reshape(-1, D)
    for function, weights in ((gt.gate_up, (gate, up)), (gt.mlp, (gate, up, down))):
        expected = function(flat, *weights, **SILU)
        assert torch.equal(function(x, *weights, **SILU), expected.reshape(*leading, expected.shape[-1]))
        out = torch.full((*leading, expected.shape[-1] + 3), torch.nan)[..., : expected.shape[-1]]
        function(x, *weights, out=out, **SILU)
        assert torch.equal(out.reshape(expected.shape), expected)


def copies_made(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return sum(event.name == "aten::copy_" for event in profile.events())


def test_rows_at_one_distance_are_not_copied():
    wide, gate, up = seeded([(3, 4, 2 * D), (F, 3 * D), (F, D)], torch.float32)
    x, gate = wide[..., :D], gate[:, D : 2 * D]
    assert copies_made(lambda: gt.gate_up(x, gate, up, **SILU)) == 0
    columns_first = up.t().contiguous().t()
    assert copies_made(lambda: gt.gate_up(x, columns_first, up, **SILU)) == 1
    assert torch.equal(gt.gate_up(x, gate, up, **SILU), gt.gate_up(x.contiguous(), gate.contiguous(), up, **SILU))


@pytest.mark.parametrize(
    "view",
    [lambda a: a.t().contiguous().t(), lambda a: a.repeat_interleave(2, -1)[..., ::2], lambda a: a.flip(0).flip(0)],
    ids=["columns first", "every second column", "flipped twice"],
)
def test_what_has_no_dense_rows_is_copied(view):
    x, gate, up, down = block()
    expected = gt.mlp(x, gate, up, down, **SILU)
    assert torch.equal(gt.mlp(view(x), view(gate), view(up), view(down), **SILU), expected)


def test_rows_at_two_distances_and_broadcasts_are_copied():
    _, gate, up, _ = block()
    (wide,) = seeded([(3, 7, D)], torch.float32)
    for x in (wide[:, :5], wide.transpose(0, 1), wide[:1].expand(4, 7, D), wide[:, :1].expand(3, 4, D)):
        assert torch.equal(gt.gate_up(x, gate, up, **SILU), gt.gate_up(x.contiguous(), gate, up, **SILU))


def test_empty_sizes():
    x, gate, up, down = block()
    assert gt.mlp(x[:0], gate, up, down, **SILU).shape == (0, D)
    assert gt.gate_up(x, gate[:0], up[:0], **SILU).shape == (T, 0)
    assert (gt.mlp(x, gate[:0], up[:0], down[:, :0], **SILU) == 0).all()  # empty sums
    assert (gt.gate_up(x[:, :0], gate[:, :0], up[:, :0], **SILU) == 0).all()


def test_act_and_mul_in_place():
    gate, up = seeded([(T, F), (T, F)], torch.float32)
    expected = gt.act_and_mul(gate, up, **SILU)
    version = up._version
    assert gt.act_and_mul(gate, up, out=up, **SILU) is up
    assert torch.equal(up, expected)
    assert up._version > version  # autograd knows of the write


def plan_count():
    return ctypes.CDLL(str(_c.NATIVE / "libgatefold_torch.so")).gatefold_torch_plan_count()


def test_one_plan_per_description_and_number_of_threads(monkeypatch):
    rng = generator()
    sizes = [int(size) for size in rng.integers(100, 5000, 2)]  # which no other test had
    x, gate, up = (random(rng, shape, torch.float32) for shape in ((3, sizes[0]), (sizes[1], sizes[0]), (*sizes[::-1],)))
    before = torch.get_num_threads()
    made = []

    def call(x=x, **options):
        count = plan_count()
        gt.gate_up(x, gate, up, layout="separate", activation="silu", **options)
        made.append(plan_count() - count)

    try:
        for threads in (1, 2, 1, 2):
            torch.set_num_threads(threads)
            assert _c.cpu_threads() == threads  # one OpenMP runtime: torch's setting reaches the library
            call()
    finally:
        torch.set_num_threads(before)
    assert made == [1, 1, 0, 0]
    made.clear()
    call(torch.cat([x, x], 1)[:, : sizes[0]])  # another leading dimension
    call(implementation="reference")
    monkeypatch.setenv("GATEFOLD_IMPL", "reference")
    call()
    call()
    assert made == [1, 1, 1, 0]


def test_the_implementation_can_be_forced():
    x, gate, up, _ = block()
    by_reference = gt.gate_up(x, gate, up, implementation="reference", **SILU)
    assert torch.allclose(by_reference, gt.gate_up(x, gate, up, **SILU), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="no such way"):
        gt.gate_up(x, gate, up, implementation="no such way", **SILU)


def refusals():
    x, gate, up, down = (torch.ones(shape) for shape in ((T, D), (F, D), (F, D), (D, F)))
    half = x.half()
    meta = x.to("meta")
    with_gradient = gate.clone().requires_grad_()
    one = {"layout": "gate_up", "activation": "silu"}
    yield "dtypes", r"gate: dtype float32, but x has float16", lambda: gt.gate_up(half, gate, up, **SILU)
    yield "float64", r"x: dtype float64, not one of", lambda: gt.gate_up(x.double(), gate, up, **SILU)
    yield "int64", r"x: dtype int64, not one of", lambda: gt.gate_up(x.long(), gate.long(), up.long(), **SILU)
    yield "no gate", r"gate: None, not a tensor", lambda: gt.gate_up(x, None, up, **SILU)
    yield "a list", r"'Tensor' for argument 'x' but instead found type 'list'", lambda: gt.mlp(
        x.tolist(), gate, up, down, **SILU)  # fmt: skip
    yield "a number for a bias", r"argument 'gate_bias' but instead found type 'float'", lambda: gt.gate_up(
        x, with_gradient, up, gate_bias=1.0, **SILU)  # fmt: skip
    yield "a list for out", r"argument 'out' but instead found type 'list'", lambda: gt.gate_up(
        x, gate, up, out=[0.0], **SILU)  # fmt: skip
    yield "dimensions", r"gate: shape \[24, 67, 1\] of 3", lambda: gt.gate_up(x, gate[..., None], up, **SILU)
    yield "no dimension", r"x: shape \[\], but", lambda: gt.gate_up(x[0, 0], gate, up, **SILU)
    yield "transposed", r"gate: shape \[67, 24\], but x of shape \[5, 67\] wants \[67, 67\]", lambda: gt.gate_up(
        x, gate.t(), up.t(), **SILU)  # fmt: skip
    yield "up", r"up: shape \[20, 67\], but gate wants \[24, 67\]", lambda: gt.gate_up(x, gate, up[:20], **SILU)
    yield "down", r"down: shape \[24, 67\].*\[67, 24\]", lambda: gt.mlp(x, gate, up, down.t(), **SILU)
    yield "gate", r"gate: shape \[5, 67\].*\[5, 24\]", lambda: gt.gemm_gated(x, x, gate, activation="silu")
    yield "bias", r"gate_bias: shape \[23\].*\[24\]", lambda: gt.gate_up(x, gate, up, gate_bias=x[0, :23], **SILU)
    yield "no up", r"up: None, but layout 'separate'", lambda: gt.gate_up(x, gate, **SILU)
    yield "an up too many", r"up: a tensor, but a packed layout", lambda: gt.gate_up(x, gate, up, **one)
    yield "odd rows", r"gate: 23 of gate and up together", lambda: gt.gate_up(x, gate[:23], **one)
    yield "block", r"block", lambda: gt.gate_up(x, gate, layout="interleaved_gate_up", block=5, activation="silu")
    yield "out's shape", r"out: shape \[5, 67\].*\[5, 24\]", lambda: gt.gate_up(x, gate, up, out=x, **SILU)
    yield "out's dtype", r"out: dtype float16, but x has float32", lambda: gt.gate_up(
        x, gate, up, out=half[:, :F], **SILU)  # fmt: skip
    yield "out's columns", r"out: strides \[1, 5\] for shape \[5, 24\]", lambda: gt.gate_up(
        x, gate, up, out=torch.ones(F, T).t(), **SILU)  # fmt: skip
    yield "out's rows overlap", r"out: strides \[1, 1\] for shape", lambda: gt.gate_up(
        x, gate, up, out=torch.ones(T + F).as_strided((T, F), (1, 1)), **SILU)  # fmt: skip
    # Torch's own way of writing to one ends in its memory (an internal assertion, then a crash).
    negative = torch.zeros(T, F, dtype=torch.complex64).conj().imag
    yield "a negative view to write", r"out: a negative view", lambda: gt.gate_up(x, gate, up, out=negative, **SILU)
    square = torch.ones(D, D)
    yield "overlap", r"overlaps input", lambda: gt.gate_up(square, square, square, out=square, **SILU)
    yield "out and a gradient", r"out: a tensor to write, but gate requires a gradient", lambda: gt.gate_up(
        x, with_gradient, up, out=torch.ones(T, F), **SILU)  # fmt: skip
    yield "devices", r"out: on meta, but x is on cpu", lambda: gt.gate_up(x, gate, up, out=meta[:, :F], **SILU)


@pytest.mark.parametrize(("message", "call"), [pytest.param(*r[1:], id=r[0]) for r in refusals()])
def test_refusals_name_the_argument_and_both_values(message, call):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_names_that_are_none_are_refused():
    x, gate, up, _ = block()
    with pytest.raises(ValueError, match="layout: 'halves', not one of separate"):
        gt.gate_up(x, gate, up, layout="halves", activation="silu")
    with pytest.raises(ValueError, match="activation: 'tanh', not one of silu"):
        gt.gate_up(x, gate, up, layout="separate", activation="tanh")


@wrong_options
def test_options_that_are_none_are_refused(options, message):
    x, gate, _, _ = block()
    with pytest.raises(ValueError, match=message):
        gt.gate_up(x, gate, **{"layout": "gate_up", "activation": "silu", **options})


def test_a_negative_view_is_read_as_what_it_stands_for():
    x, gate, up, _ = block()
    negative = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert negative.is_neg()
    assert torch.equal(gt.gate_up(negative, gate, up, **SILU), gt.gate_up(x, gate, up, **SILU))


def test_clamped_figures_reach_the_library():
    gate, up = seeded([(T, F), (T, F)], torch.float32, 3.0)
    clamp = gatefold.SwigluClamped(1.5, 1.25, 0.25)
    expected = gatefold.act_and_mul(gate.numpy(), up.numpy(), layout="separate", activation=clamp)
    found = gt.act_and_mul(gate, up, layout="separate", activation=clamp)
    assert torch.equal(found, torch.from_numpy(expected))
