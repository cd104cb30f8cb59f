"""Gradients: gradcheck on a double-precision reference, componentwise bounds on the library, what is saved, refusals."""

from types import SimpleNamespace

import pytest
import torch
from torch_gradients import ACTIVATIONS, SLOPES, Gradients, act_and_mul, halves
from torch_support import DTYPES, seeded

import gatefold.torch as gt
from gatefold.torch import _autograd
from gatefold.torch._how import how, how_activated

T, D, F = 7, 40, 24
SILU = {"layout": "separate", "activation": "silu"}
PACKED = {"gate_up": 0, "up_gate": 0, "interleaved_gate_up": 2, "interleaved_up_gate": 4}


def parsed(text):
    return dict(part.split("=") for part in text.split(";") if part)


def reference():
    """The raw operators in torch's own double precision."""

    def elementwise(gate, up, text):
        how = parsed(text)
        if up is None:
            gate, up = halves(gate, how["layout"], int(how.get("block", 0)), -1)
        return act_and_mul(gate, up, how["activation"])

    def gemm(x, weight, bias, text):
        return torch.nn.functional.linear(x, weight, bias)

    def gemm_gated(x, gate, weight, bias, text):
        return act_and_mul(gate, gemm(x, weight, bias, ""), parsed(text)["activation"])

    def gate_up(x, gate, up, gate_bias, up_bias, text):
        return elementwise(gemm(x, gate, gate_bias, ""), None if up is None else gemm(x, up, up_bias, ""), text)

    def mlp(x, gate, up, down, gate_bias, up_bias, down_bias, text):
        return gemm(gate_up(x, gate, up, gate_bias, up_bias, text), down, down_bias, "")

    return SimpleNamespace(act_and_mul=elementwise, gemm=gemm, gemm_gated=gemm_gated, gate_up=gate_up, mlp=mlp)


def in_double_precision(monkeypatch):
    for name in ("raw", "eager"):
        monkeypatch.setattr(_autograd, name, reference())


def leaves(*shapes):
    return [tensor.double().requires_grad_() for tensor in seeded(shapes, torch.float32, 1.0)]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("save", [False, True])
def test_gradcheck_of_the_formulas(monkeypatch, activation, save):
    in_double_precision(monkeypatch)
    way, one = how("separate", 0, activation, None), how_activated(activation, None)
    t, d, f = 2, 3, 4
    x, gate, up, down, gate_bias, up_bias, down_bias = leaves((t, d), (f, d), (f, d), (d, f), (f,), (f,), (d,))
    values, more = leaves((t, f), (t, f))

    def first(found):
        return found[0] if save else found

    assert torch.autograd.gradcheck(lambda *a: _autograd.act_and_mul(*a, way), (values, more))
    assert torch.autograd.gradcheck(lambda *a: _autograd.gemm_gated(*a, one), (x, values, gate, gate_bias))
    assert torch.autograd.gradcheck(lambda *a: first(_autograd.gate_up(*a, way, save)), (x, gate, up, gate_bias, up_bias))
    assert torch.autograd.gradcheck(lambda *a: first(_autograd.mlp(*a, way, save)),
                                    (x, gate, up, down, gate_bias, up_bias, down_bias))  # fmt: skip


@pytest.mark.parametrize("layout", PACKED)
@pytest.mark.parametrize("save", [False, True])
def test_gradcheck_of_packed_layouts(monkeypatch, layout, save):
    in_double_precision(monkeypatch)
    way = how(layout, PACKED[layout], "silu", None)
    x, weight, down, bias, values = leaves((2, 3), (8, 3), (3, 4), (8,), (2, 8))

    def block(x, weight, down, bias):
        found = _autograd.mlp(x, weight, None, down, bias, None, None, way, save)
        return found[0] if save else found

    assert torch.autograd.gradcheck(block, (x, weight, down, bias))
    assert torch.autograd.gradcheck(lambda v: _autograd.act_and_mul(v, None, way), (values,))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("activation", SLOPES)
@pytest.mark.parametrize("save", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_componentwise(dtype, activation, save, whole):
    x, gate, up, down, dy, dh = seeded([(T, D), (F, D), (F, D), (D, F), (T, D), (T, F)], dtype)
    tensors = {"x": x, "gate": gate, "up": up} | ({"down": down} if whole else {})
    for tensor in tensors.values():
        tensor.requires_grad_()
    options = {"layout": "separate", "activation": activation, "save_pre_activations": save}
    out = gt.mlp(x, gate, up, down, **options) if whole else gt.gate_up(x, gate, up, **options)
    gradient = dy if whole else dh
    found = torch.autograd.grad(out, list(tensors.values()), gradient)
    Gradients(tensors, gradient, activation).assert_within(dict(zip(tensors, found)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", PACKED)
@pytest.mark.parametrize("save", [False, True])
def test_componentwise_in_packed_layouts_with_biases(dtype, layout, save):
    block = PACKED[layout]
    x, packed, bias, dh = seeded([(T, D), (2 * F, D), (2 * F,), (T, F)], dtype)
    for tensor in (x, packed, bias):
        tensor.requires_grad_()
    out = gt.gate_up(x, packed, layout=layout, block=block, activation="silu", gate_bias=bias, save_pre_activations=save)
    dx, d_packed, d_bias = torch.autograd.grad(out, (x, packed, bias), dh)

    def named(tensor, of_weight, of_bias):
        gate, up = halves(of_weight, layout, block, 0)
        gate_bias, up_bias = halves(of_bias, layout, block, 0)
        return {"x": tensor, "gate": gate, "up": up, "gate_bias": gate_bias, "up_bias": up_bias}

    Gradients(named(x, packed, bias), dh, "silu").assert_within(named(dx, d_packed, d_bias))


def test_recomputing_saves_x_alone():
    x, gate, up, down = seeded([(64, D), (F, D), (F, D), (D, F)], torch.float32)
    gate.requires_grad_()
    for save, expected in ((False, {(64, D)}), (True, {(64, D), (64, F)})):
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(tuple(t.shape)) or t, lambda t: t):
            gt.mlp(x, gate, up, down, save_pre_activations=save, **SILU)
        assert {shape for shape in kept if shape[0] == 64} == expected


def test_only_what_is_asked_for_is_computed():
    x, gate, up, down = seeded([(T, D), (F, D), (F, D), (D, F)], torch.float32)
    up.requires_grad_()
    gt.mlp(x, gate, up, down, **SILU).sum().backward()
    assert up.grad.shape == (F, D) and gate.grad is None and x.grad is None


@pytest.mark.parametrize("alone", range(7))
def test_any_argument_alone_gets_its_gradient(alone):
    """A raw operator would lose it silently."""
    tensors = seeded([(T, D), (F, D), (F, D), (D, F), (F,), (F,), (D,)], torch.float32)
    tensors[alone].requires_grad_()
    x, gate, up, down, gate_bias, up_bias, down_bias = tensors
    (values,) = seeded([(T, F)], torch.float32)
    biases = {"gate_bias": gate_bias, "up_bias": up_bias}
    assert gt.mlp(x, gate, up, down, down_bias=down_bias, **biases, **SILU).requires_grad
    assert gt.gate_up(x, gate, up, **biases, **SILU).requires_grad == (alone not in (3, 6))
    assert gt.gemm_gated(x, values, gate, bias=gate_bias, activation="silu").requires_grad == (alone in (0, 1, 4))
    assert gt.act_and_mul(gate, up, **SILU).requires_grad == (alone in (1, 2))
    leaf = values.clone().requires_grad_()
    assert gt.gemm_gated(x.detach(), leaf, gate.detach(), activation="silu").requires_grad


@pytest.mark.parametrize("tokens", [0, 1])
def test_few_tokens(tokens):
    x, gate, up, down = (t.requires_grad_() for t in seeded([(2, tokens, D), (F, D), (F, D), (D, F)], torch.bfloat16))
    for save in (False, True):
        gt.mlp(x, gate, up, down, save_pre_activations=save, **SILU).sum().backward()
    assert x.grad.shape == x.shape
    assert tokens or (gate.grad == 0).all()


def test_functional_gradients():
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    found = torch.func.grad(lambda x: gt.gate_up(x, gate, up, **SILU).sum())(x)
    leaf = x.clone().requires_grad_()
    gt.gate_up(leaf, gate, up, **SILU).sum().backward()
    assert torch.equal(found, leaf.grad)


def test_second_derivatives_are_refused():
    x, gate, up, down = seeded([(T, D), (F, D), (F, D), (D, F)], torch.float32)
    x.requires_grad_()
    outputs = {
        "gate_up": lambda: gt.gate_up(x, gate, up, **SILU),
        "mlp": lambda: gt.mlp(x, gate, up, down, **SILU),
        "gemm_gated": lambda: gt.gemm_gated(x, torch.ones(T, F), gate, activation="silu"),
        "act_and_mul": lambda: gt.act_and_mul(x, x * 2, **SILU),
    }
    for name, call in outputs.items():
        (dx,) = torch.autograd.grad(call().sum(), x, create_graph=True)
        with pytest.raises(NotImplementedError, match=rf"gatefold.torch.{name}: its backward was differentiated"):
            dx.sum().backward()
    with pytest.raises(NotImplementedError, match="first derivatives alone"):
        torch.func.grad(lambda x: torch.func.grad(lambda x: outputs["gate_up"]().sum() + gt.gate_up(
            x, gate, up, **SILU).sum())(x).sum())(x.detach())  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_forward_mode_is_refused():
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(NotImplementedError, match="forward-mode"):
            gt.gate_up(dual, gate, up, **SILU)
        gt.gate_up(x, gate, up, **SILU)
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda x: gt.gate_up(x, gate, up, **SILU), (x,), (x,))


def test_a_write_after_saving_is_noticed():
    gate, up = seeded([(T, F), (T, F)], torch.float32)
    gate.requires_grad_()
    h = gt.act_and_mul(gate, up, **SILU)
    with torch.no_grad():
        gt.act_and_mul(gate, up, out=up, **SILU)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        h.sum().backward()
