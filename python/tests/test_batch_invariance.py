"""batch_invariant: a row's bits are the same alone and among others, by every way from Python to the library.

Where the library has one kernel for all numbers of rows this holds without the option too. On machines with AMX it takes
another for few rows of fp32 and fp16, and on GPUs for few rows of all types.
"""

import numpy as np
import pytest
import torch
from support import DTYPES, generator, normal
from torch_support import DTYPES as TORCH_DTYPES
from torch_support import seeded

import gatefold
import gatefold.torch as gt
from gatefold import _ops

D, F = 192, 96
CUTS = (0, 1, 7, 64, 131)
SILU = {"layout": "separate", "activation": "silu"}
devices = pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])


def parts_of(rows):
    return (rows[begin:end] for begin, end in zip(CUTS, CUTS[1:]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays(dtype):
    rng = generator()
    x, gate, up, down = (normal(rng, shape, dtype, 0.3) for shape in ((CUTS[-1], D), (F, D), (F, D), (D, F)))
    given = normal(rng, (CUTS[-1], F), dtype)
    calls = {
        "gemm": lambda x, _: gatefold.gemm(x, gate, batch_invariant=True),
        "gemm_gated": lambda x, g: gatefold.gemm_gated(x, g, up, activation="silu", batch_invariant=True),
        "gate_up": lambda x, _: gatefold.gate_up(x, gate, up, **SILU, batch_invariant=True),
        "mlp": lambda x, _: gatefold.mlp(x, gate, up, down, **SILU, batch_invariant=True),
    }
    for name, call in calls.items():
        parts = [call(*rows) for rows in zip(parts_of(x), parts_of(given))]
        assert np.concatenate(parts).tobytes() == call(x, given).tobytes(), name


@devices
@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_tensors(dtype, device):
    shapes = (CUTS[-1], D), (F, D), (F, D), (D, F), (CUTS[-1], F)
    x, gate, up, down, given = (tensor.to(device) for tensor in seeded(shapes, dtype, 0.3))
    calls = {
        "gemm_gated": lambda x, g: gt.gemm_gated(x, g, up, activation="silu", batch_invariant=True),
        "gate_up": lambda x, _: gt.gate_up(x, gate, up, **SILU, batch_invariant=True),
        "mlp": lambda x, _: gt.mlp(x, gate, up, down, **SILU, batch_invariant=True),
    }
    for name, call in calls.items():
        parts = [call(*rows) for rows in zip(parts_of(x), parts_of(given))]
        assert torch.equal(torch.cat(parts), call(x, given)), name


@devices
@pytest.mark.parametrize("save", [False, True])
def test_modules_with_and_without_gradients(device, save):
    layer = gt.GatedMLP(D, F, save_pre_activations=save, batch_invariant=True, device=device)
    x = seeded([(CUTS[-1], D)], torch.float32)[0].to(device)
    for with_gradients in (False, True):
        with torch.set_grad_enabled(with_gradients):
            whole, parts = layer(x), [layer(rows) for rows in parts_of(x)]
        assert whole.requires_grad == with_gradients
        assert torch.equal(torch.cat(parts), whole)


class SeparateMLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = torch.nn.Linear(D, F), torch.nn.Linear(D, F)
        self.down_proj, self.act_fn = torch.nn.Linear(F, D), torch.nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def test_patched_modules():
    module = SeparateMLP()
    report = gt.patch(module, batch_invariant=True)
    assert len(report.changed) == 1
    (x,) = seeded([(CUTS[-1], D)], torch.float32)
    with torch.no_grad():
        assert torch.equal(torch.cat([module(rows) for rows in parts_of(x)]), module(x))


def test_the_option_reaches_the_library():
    """Not by its results alone, which are the same without it on many machines."""
    x, weight = np.ones((2, 8), np.float32), np.ones((4, 8), np.float32)
    assert [_ops._gemm(x, weight, batch_invariant=b).description.c_desc().flags for b in (False, True)] == [0, 1]
    assert gt._how.how("separate", 0, "silu", "loops", True).text == (
        "layout=separate;activation=silu;batch_invariant=1;implementation=loops")  # fmt: skip
    assert "batch_invariant" not in gt._how.how("separate", 0, "silu", "loops", False).text
    with pytest.raises(RuntimeError, match="batch_invariant: unknown value '2'"):
        gt._library.operators.gemm(torch.ones(2, 8), torch.ones(4, 8), None, "batch_invariant=2")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_an_implementation_that_is_not_invariant_is_refused():
    x, gate, up = (torch.ones(shape, device="cuda", dtype=torch.bfloat16) for shape in ((65, 64), (64, 64), (64, 64)))
    with pytest.raises(RuntimeError, match="not batch-invariant"):
        gt.gate_up(x, gate, up, **SILU, implementation="sm80", batch_invariant=True)


@pytest.mark.parametrize("wrong", ["yes", None, 2])
def test_what_is_no_truth_value_is_refused(wrong):
    x, weight = np.ones((2, 8), np.float32), np.ones((4, 8), np.float32)
    with pytest.raises(ValueError, match=f"batch_invariant: {wrong!r}, not True or False"):
        gatefold.gemm(x, weight, batch_invariant=wrong)
    with pytest.raises(ValueError, match=f"batch_invariant: {wrong!r}, not True or False"):
        gt.gate_up(torch.ones(2, 8), torch.ones(4, 8), torch.ones(4, 8), **SILU, batch_invariant=wrong)
    with pytest.raises(ValueError, match=f"batch_invariant: {wrong!r}, not True or False"):
        gt.GatedMLP(8, 8, batch_invariant=wrong)
