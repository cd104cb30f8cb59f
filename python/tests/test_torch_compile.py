"""The operators among torch's own machinery: opcheck, torch.compile, export, autocast, inference mode."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_support import DTYPES, D, F, T, seeded

import gatefold.torch as gt
from gatefold.torch import _library

SILU = {"layout": "separate", "activation": "silu"}
HOW = "layout=separate;activation=silu"
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def calls(dtype):
    """Arguments of every raw operator."""
    x, gate, up, down, bias, down_bias, values = seeded([(T, D), (F, D), (F, D), (D, F), (F,), (D,), (T, F)], dtype)
    packed = torch.cat([gate, up])
    yield "act_and_mul", (values, values * 2, HOW)
    yield "act_and_mul", (torch.cat([values, values], 1), None, "layout=interleaved_up_gate;block=8;activation=gelu_erf")
    yield "gemm", (x, gate, bias, "")
    yield "gemm_gated", (x, values, gate, bias, "activation=swiglu_clamped;limit=7.0;alpha=1.702;beta=1.0")
    yield "gate_up", (x[None], gate, up, bias, bias, HOW)
    yield "gate_up", (x.t().contiguous().t(), packed, None, None, None, "layout=gate_up;activation=relu")
    yield "mlp", (x, gate, up, down, bias, bias, down_bias, HOW)


@dtypes
@pytest.mark.parametrize("number", range(7))
def test_opcheck(dtype, number):
    name, arguments = list(calls(dtype))[number]
    torch.library.opcheck(getattr(_library.operators, name), arguments)
    out = getattr(_library.operators, name)(*arguments)
    torch.library.opcheck(getattr(_library.operators, f"{name}_out"), (*arguments, torch.empty_like(out)))


@pytest.mark.parametrize("with_gradients", [False, True])
@pytest.mark.parametrize("function", ["gate_up", "mlp", "act_and_mul", "gemm_gated"])
def test_compiles_to_three_graphs_without_a_break(function, with_gradients):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    x, gate, up, down, values = seeded([(65536, 16), (8, 16), (8, 16), (16, 8), (65536, 8)], torch.float32)
    calls = {
        "gate_up": lambda x, v: gt.gate_up(x, gate, up, **SILU),
        "mlp": lambda x, v: gt.mlp(x, gate, up, down, save_pre_activations=True, **SILU),
        "act_and_mul": lambda x, v: gt.act_and_mul(v, v * 2, **SILU),
        "gemm_gated": lambda x, v: gt.gemm_gated(x, v, gate, activation="silu"),
    }
    compiled = torch.compile(calls[function], fullgraph=True, dynamic=True, backend="aot_eager")
    for tokens in (0, 1, 2, 3, 64, 1000, 65536):
        inputs = [t[:tokens].clone().requires_grad_(with_gradients) for t in (x, values)]
        again = [t.detach().clone().requires_grad_(with_gradients) for t in inputs]
        found, expected = compiled(*inputs), calls[function](*again)
        assert torch.equal(found, expected)
        if with_gradients:
            found.sum().backward()
            expected.sum().backward()
            for one, other in zip(inputs, again):
                assert (one.grad is None) == (other.grad is None)
                assert one.grad is None or torch.equal(one.grad, other.grad)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 3
    assert not torch._dynamo.utils.counters["graph_break"]


def test_compiles_with_inductor_in_inference_mode():
    torch._dynamo.reset()
    x, gate, up, down = seeded([(T, D), (F, D), (F, D), (D, F)], torch.bfloat16)
    function = lambda x: gt.mlp(x * 1, gate, up, down, **SILU) * 1  # noqa: E731
    with torch.inference_mode():
        assert torch.equal(torch.compile(function, fullgraph=True)(x), function(x))


def test_compiled_out_is_written():
    torch._dynamo.reset()
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    out = torch.full((T, F), torch.nan)
    torch.compile(lambda x, out: gt.gate_up(x, gate, up, out=out, **SILU), fullgraph=True, backend="aot_eager")(x, out)
    assert torch.equal(out, gt.gate_up(x, gate, up, **SILU))


def test_exports_for_any_number_of_tokens():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            gate, up, down = seeded([(F, D), (F, D), (D, F)], torch.float32)
            self.gate, self.up, self.down = (torch.nn.Parameter(weight) for weight in (gate, up, down))

        def forward(self, x):
            return gt.mlp(x, self.gate, self.up, self.down, **SILU)

    block = Block()
    x, longer = seeded([(T, D), (4 * T, D)], torch.float32)
    with torch.no_grad():
        program = torch.export.export(block, (x,), dynamic_shapes={"x": {0: torch.export.Dim("tokens")}})
        assert torch.equal(program.module()(longer), block(longer))
    assert "gatefold._mlp" in program.graph_module.code


def test_autocast_casts_as_it_does_for_linear():
    x, gate, up, down, bias = seeded([(T, D), (F, D), (F, D), (D, F), (F,)], torch.float32)
    gate.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found = gt.mlp(x, gate, up, down, gate_bias=bias, **SILU)
        values = gt.act_and_mul(x, x, **SILU)
    assert found.dtype == torch.bfloat16 and values.dtype == torch.float32
    cast = [tensor.detach().bfloat16() for tensor in (x, gate, up, down)]
    assert torch.equal(found, gt.mlp(*cast, gate_bias=bias.bfloat16(), **SILU))
    found.sum().backward()
    assert gate.grad.dtype == torch.float32


class Seen(TorchDispatchMode):
    """The operators that a dispatch mode is asked about."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name())
        return function(*args, **(kwargs or {}))


class SeenByFunctions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("with_gradients", [False, True])
def test_modes_subclasses_and_the_profiler_see_the_operators(with_gradients):
    """Whatever way a call takes for speed."""
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    gate.requires_grad_(with_gradients)
    with Seen() as dispatched:
        gt.gate_up(x, gate, up, **SILU)
    assert "gatefold::_gate_up" in dispatched.names
    with SeenByFunctions() as called:
        gt.gate_up(x, gate, up, **SILU)
    assert any("gatefold._gate_up" in name for name in called.names)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert type(gt.gate_up(x, gate, up, **SILU)) is FakeTensor
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        gt.gate_up(x, gate, up, **SILU)
    assert "gatefold::_gate_up" in {event.name for event in profile.events()}
    traced = make_fx(lambda x: gt.gate_up(x, gate.detach(), up, **SILU))(x)
    assert "gatefold._gate_up" in traced.code


def test_inference_mode_gives_inference_tensors():
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    with torch.inference_mode():
        found = gt.gate_up(x, gate, up, **SILU)
        gt.gate_up(x, gate, up, out=found, **SILU)
    assert found.is_inference()
    assert torch.equal(found, gt.gate_up(x, gate, up, **SILU))


