"""What the tests share: fresh data with a printed seed, poisoned outputs between canaries, and the library's bound."""

import ctypes
import secrets

import ml_dtypes
import numpy as np
import pytest

from gatefold import SwigluClamped, _c, _ops

DTYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
ACTIVATIONS = ["silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity", "swiglu_clamped"]
# What is no value of an option of gate_up with packed weights, and what the refusal says of it.
WRONG_OPTIONS = {
    "a list for a layout": ({"layout": ["gate_up"]}, r"layout: \['gate_up'\], not one of separate"),
    "no layout": ({"layout": None}, "layout: None, not one of separate"),
    "a list for an activation": ({"activation": ["silu"]}, r"activation: \['silu'\], not one of silu"),
    "no activation": ({"activation": None}, "activation: None, not one of silu"),
    "a fraction for a block": ({"layout": "interleaved_gate_up", "block": 3.5}, "block: 3.5, not a whole number"),
    "a text for a block": ({"layout": "interleaved_gate_up", "block": "3"}, "block: '3', not a whole number"),
    "a block of 65 bits": ({"layout": "interleaved_gate_up", "block": 2**64 + 3}, f"block: {2**64 + 3}, not a number of 64"),
    "a text for a figure": ({"activation": SwigluClamped("7")}, "limit: '7', not a number"),
    "an array for a figure": ({"activation": SwigluClamped(7.0, [1.0])}, r"alpha: \[1.0\], not a number"),
    "a figure beyond fp32": ({"activation": SwigluClamped(beta=-1e40)}, r"beta: -1e\+40, beyond fp32's 3.402823e\+38"),
    "a number for a name": ({"implementation": 5}, "implementation: 5, not a name or None"),
    "a zero in a name": ({"implementation": "loops\0"}, r"implementation: 'loops\\x00', not a name or None"),
}
wrong_options = pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)

PACKED = ["gate_up", "up_gate", "interleaved_gate_up", "interleaved_up_gate"]
ZERO_MEAN = 2


def generator() -> np.random.Generator:
    seed = secrets.randbits(32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    return np.random.default_rng(seed)


def normal(rng, shape, dtype, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def strided(array, margin=3):
    """The same matrix with `margin` NaN between rows."""
    wide = np.full((array.shape[0], array.shape[1] + margin), np.nan, array.dtype)
    wide[:, : array.shape[1]] = array
    return wide[:, : array.shape[1]]


class Poisoned:
    """An output of NaN amid canaries: a frame of rows and columns that must stay as it is."""

    def __init__(self, shape, dtype, margin=2):
        self.frame = np.full((shape[0] + 2, shape[1] + margin), 77.0, dtype)
        self.out = self.frame[1:-1, : shape[1]]
        self.out[...] = np.nan

    def assert_frame_untouched(self):
        frame = self.frame.astype(np.float64)
        frame[1:-1, : self.out.shape[1]] = 77.0
        assert (frame == 77.0).all()


def report(call, output=None, data=ZERO_MEAN):
    """gatefold_check's report of what a call of _ops wrote, and its double-precision truth."""
    if output is not None:
        out = call.operands["out"]._replace(array=output)
        call = call._replace(operands={**call.operands, "out": out})
    truth = np.empty(call.operands["out"].array.shape, np.float64)
    result = _c.ErrorReport()
    _c.check(
        _c.library.gatefold_check(
            ctypes.byref(call.description.c_desc()),
            ctypes.byref(call.c_args()),
            data,
            ctypes.byref(result),
            truth.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        )
    )
    return result, truth


def split(packed, layout, block, axis):
    """gate and up of a packed matrix, written without the library: the layouts' definition."""
    rows = np.moveaxis(packed, axis, 0)
    half = rows.shape[0] // 2
    step = block if layout.startswith("interleaved") else half
    parts = rows.reshape(half // step, 2, step, *rows.shape[1:])
    first, second = (np.moveaxis(parts[:, i].reshape(half, *rows.shape[1:]), 0, axis) for i in (0, 1))
    return (second, first) if layout.endswith("up_gate") else (first, second)
