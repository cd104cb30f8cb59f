"""The operators on a GPU, where there is one and the wheel has the CUDA back end: bounds, streams, graphs, devices."""

import ctypes

import pytest
import torch
from support import ACTIVATIONS, PACKED, report
from torch_support import DTYPES, as_numpy, seeded

import gatefold.torch as gt
from gatefold import _c, _ops

CUDA = 2
SILU = {"layout": "separate", "activation": "silu"}
T, D, F = 33, 128, 96


def has_gpu():
    count = _c.library.gatefold_device_count
    count.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    return torch.cuda.is_available() and count(CUDA, None) > 0


pytestmark = pytest.mark.skipif(not has_gpu(), reason="no GPU, or a wheel without the CUDA back end")


def on_gpu(*tensors):
    return [None if tensor is None else tensor.cuda() for tensor in tensors]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layout", ["separate", *PACKED])
def test_gate_up_is_within_its_bound(dtype, activation, layout):
    rows = F if layout == "separate" else 2 * F
    x, gate, up = seeded([(T, D), (rows, D), (F, D)], dtype)
    up = up if layout == "separate" else None
    options = {"layout": layout, "block": 8 if "interleaved" in layout else 0, "activation": activation}
    found = gt.gate_up(*on_gpu(x, gate, up), **options).cpu()
    said, _ = report(_ops._gate_up(*(as_numpy(tensor) for tensor in (x, gate, up)), **options), as_numpy(found))
    assert said.violations == 0, f"{said.max_bound_ratio} of the bound at {said.worst_row}, {said.worst_column}"


def test_the_current_stream_is_taken():
    x, gate, up, down = on_gpu(*seeded([(T, D), (F, D), (F, D), (D, F)], torch.bfloat16))
    expected = gt.mlp(x, gate, up, down, **SILU)
    torch.cuda.synchronize()
    late = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        late.copy_(x)  # only a run that is behind it on the same stream sees x
        found = gt.mlp(late, gate, up, down, **SILU)
    stream.synchronize()
    assert torch.equal(found, expected)


def test_a_graph_is_captured_and_replayed():
    x, other, gate, up, down = on_gpu(*seeded([(T, D), (T, D), (F, D), (F, D), (D, F)], torch.bfloat16))
    expected = gt.mlp(other, gate, up, down, **SILU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gt.mlp(x, gate, up, down, **SILU)
    x.copy_(other)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, expected)


def test_mixed_devices_are_refused():
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.float32)
    with pytest.raises(RuntimeError, match="gate: on cpu, but x is on cuda:0"):
        gt.gate_up(x.cuda(), gate, up.cuda(), **SILU)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_another_device_than_the_current_one():
    x, gate, up = seeded([(T, D), (F, D), (F, D)], torch.bfloat16)
    expected = gt.gate_up(*on_gpu(x, gate, up), **SILU)
    found = gt.gate_up(*(tensor.to("cuda:1") for tensor in (x, gate, up)), **SILU)
    assert torch.cuda.current_device() == 0 and torch.equal(found.cpu(), expected.cpu())


def test_gradients_and_compiled():
    torch._dynamo.reset()
    tensors = on_gpu(*seeded([(T, D), (F, D), (F, D), (D, F)], torch.float32))
    tensors = [tensor.requires_grad_() for tensor in tensors]
    y = gt.mlp(*tensors, **SILU)
    y.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in tensors)
    compiled = torch.compile(lambda *a: gt.mlp(*a, **SILU), fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        assert torch.equal(compiled(*tensors), y)
