"""The gated MLP in NumPy float64, and the componentwise bounds that gatefold.h states (zero-mean data)."""

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

DTYPES = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}
ROUNDING = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24}
FLOOR = {"bf16": 2.0**-126, "fp16": 2.0**-25, "fp32": 2.0**-126}

_erf = np.vectorize(math.erf, otypes=[np.float64])

ACTIVATIONS = {
    "silu": lambda g: g / (1.0 + np.exp(-g)),
    "gelu_pytorch_tanh": lambda g: 0.5 * g * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (g + 0.044715 * g**3))),
    "gelu": lambda g: 0.5 * g * (1.0 + _erf(g / math.sqrt(2.0))),
}
LARGEST_SLOPE = {"silu": 1.1, "gelu_pytorch_tanh": 1.13, "gelu": 1.13}


@dataclass
class Bounded:
    """Exact values, and how far a computed one may be from each."""

    value: np.ndarray
    bound: np.ndarray

    def worst_ratio(self, computed):
        assert computed.shape == self.value.shape
        error = np.abs(computed.astype(np.float64) - self.value)
        return float(np.max(error / self.bound))  # a NaN stays one, and is below no limit

    def relative_l2(self, computed):
        return float(np.linalg.norm(computed.astype(np.float64) - self.value) / np.linalg.norm(self.value))


def gamma(dtype, length):
    """Of a sum of `length` products, relative to the sum of their magnitudes."""
    if dtype == "fp32":
        return math.sqrt(length) * 2.0**-24 + 2.0**-21
    return min(math.sqrt(max(length, 64)) * 2.0**-26, length * 2.0**-24)


def gate_up(dtype, activation, x, w_gate, w_up):
    x, w_gate, w_up = (a.astype(np.float64) for a in (x, w_gate, w_up))
    gate, up = x @ w_gate.T, x @ w_up.T
    gate_magnitude, up_magnitude = np.abs(x) @ np.abs(w_gate).T, np.abs(x) @ np.abs(w_up).T
    activated = ACTIVATIONS[activation](gate)
    value = activated * up
    sums = LARGEST_SLOPE[activation] * gate_magnitude * np.abs(up) + up_magnitude * np.abs(activated)
    evaluation = 2.0**-20 * np.maximum(1.0, np.abs(gate) / 8.0)
    bound = (ROUNDING[dtype] + evaluation) * np.abs(value) + gamma(dtype, x.shape[1]) * sums + FLOOR[dtype]
    if activation == "gelu":  # 1 + erf loses digits where erf is near -1
        bound += 2.0**-22 * np.abs(gate * up)
    return Bounded(value, bound)


def gemm(dtype, x, w):
    x, w = x.astype(np.float64), w.astype(np.float64)
    value = x @ w.T
    magnitude = np.abs(x) @ np.abs(w).T
    return Bounded(value, ROUNDING[dtype] * np.abs(value) + gamma(dtype, x.shape[1]) * magnitude + FLOOR[dtype])


def mlp(dtype, h, w_down):
    """y from the exact h: its own roundings, and h's carried through w_down."""
    own = gemm(dtype, h.value, w_down)
    carried = h.bound @ np.abs(w_down.astype(np.float64)).T
    return Bounded(own.value, own.bound + (1.0 + ROUNDING[dtype] + gamma(dtype, h.value.shape[1])) * carried)
