"""Gradients in double precision, and componentwise bounds for those that gatefold.torch computes.

A first-order model with its cross terms: the pre-activations g and u are rounded (u|g|) after a sum (gamma A, as in
gatefold_check), the element-wise part is rounded once, and each product of the backward is a sum in fp32 (its length
times 2^-24, the ceiling for any data and order) that is rounded once or, where two are added, twice.
"""

import torch
from torch_support import ROUNDING

# Largest |act'| and |act''|.
SLOPES = {
    "silu": (1.1, 0.5), "gelu_tanh": (1.13, 0.84), "gelu_erf": (1.13, 0.8), "sigmoid": (0.25, 0.0963),
    "identity": (1.0, 0.0),
}  # fmt: skip
ACTIVATIONS = {
    "silu": torch.nn.functional.silu,
    "gelu_tanh": lambda g: torch.nn.functional.gelu(g, approximate="tanh"),
    "gelu_erf": torch.nn.functional.gelu,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "identity": lambda g: g,
    "swiglu_clamped": None,
}
ELEMENTWISE = 2.0**-20


def act_and_mul(gate, up, activation, clamp=(7.0, 1.702, 1.0)):
    """The definition, in torch's operations."""
    if activation == "swiglu_clamped":
        limit, alpha, beta = clamp
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        return gate * torch.sigmoid(alpha * gate) * (up + beta)
    return ACTIVATIONS[activation](gate) * up


def halves(tensor, layout, block, dim):
    """gate and up of a packed tensor."""
    tensor = tensor.movedim(dim, 0)
    half = tensor.shape[0] // 2
    step = block if layout.startswith("interleaved") else half
    parts = tensor.reshape(half // step, 2, step, *tensor.shape[1:])
    first, second = (parts[:, i].reshape(half, *tensor.shape[1:]).movedim(0, dim) for i in (0, 1))
    return (second, first) if layout.endswith("up_gate") else (first, second)


class Gradients:
    """Truth and bounds for y = (act(x Wg^T) * (x Wu^T)) Wd^T with a gradient dy, or for gate_up, where dy is dh."""

    def __init__(self, tensors, dy, activation):
        self.u = ROUNDING[dy.dtype]
        self.first, self.second = SLOPES[activation]
        leaves = {name: tensor.detach().double().requires_grad_() for name, tensor in tensors.items()}
        x, gate, up, down = (leaves.get(name) for name in ("x", "gate", "up", "down"))
        biases = [leaves.get(name, torch.zeros(gate.shape[0], dtype=torch.float64)) for name in ("gate_bias", "up_bias")]
        g, u = x @ gate.T + biases[0], x @ up.T + biases[1]
        h = ACTIVATIONS[activation](g) * u
        y = h if down is None else h @ down.T
        wide = dy.double()
        names = list(leaves)
        found = torch.autograd.grad(y, [*leaves.values(), g, u, *([h] if down is not None else [])], wide)
        self.truth = dict(zip(names, found))
        dg, du, dh = found[len(names)], found[len(names) + 1], found[-1] if down is not None else wide
        with torch.no_grad():
            ones = torch.ones(len(x), 1, dtype=torch.float64)
            inputs = torch.cat([x, ones], 1)  # a bias is a term of its sum
            weights = [torch.cat([w, b[:, None]], 1) for w, b in zip((gate, up), biases)]
            e_g, e_u = (self.product(inputs, torch.zeros(()), weight.T, torch.zeros(())) for weight in weights)
            self._bound(x, gate, up, down, g, u, h, e_g, e_u, dy=wide, dg=dg, du=du, dh=dh, activation=activation)

    def product(self, a, error_a, b, error_b, roundings=1):
        """A bound for the error of fl(a) fl(b)."""
        exact = (a @ b).abs()
        slack = (a.abs() + error_a) @ (b.abs() + error_b) - a.abs() @ b.abs()
        gamma = a.shape[1] * 2.0**-24 + 2.0**-21
        return slack + gamma * (a.abs() @ b.abs() + slack) + roundings * self.u * (exact + slack)

    def _bound(self, x, gate, up, down, g, u, h, e_g, e_u, dy, dg, du, dh, activation):
        none = torch.zeros(())
        e_dh = none if down is None else self.product(dy, none, down, none)
        with torch.enable_grad():
            leaf = g.detach().requires_grad_()
            value = ACTIVATIONS[activation](leaf)
            (slope,) = torch.autograd.grad(value, leaf, torch.ones_like(value))
        value = value.detach().abs()
        e_value, e_slope = self.first * e_g + ELEMENTWISE * value, self.second * e_g + ELEMENTWISE

        def of_factors(*factors):
            exact, upper = 1.0, 1.0
            for factor, error in factors:
                exact, upper = exact * factor.abs(), upper * (factor.abs() + error)
            return upper - exact + self.u * upper

        e_dg = of_factors((dh, e_dh), (u, e_u), (slope, e_slope))
        e_du = of_factors((dh, e_dh), (value, e_value))
        gate_term, up_term = self.product(dg, e_dg, gate, none), self.product(du, e_du, up, none)
        self.bound = {
            "x": gate_term + up_term + 2 * self.u * ((dg @ gate).abs() + (du @ up).abs() + gate_term + up_term),
            "gate": self.product(dg.T, e_dg.T, x, none),
            "up": self.product(du.T, e_du.T, x, none),
        }
        ones = torch.ones(1, len(x), dtype=torch.float64)
        self.bound["gate_bias"] = self.product(ones, none, dg, e_dg)[0]
        self.bound["up_bias"] = self.product(ones, none, du, e_du)[0]
        if down is not None:
            e_h = of_factors((value, e_value), (u, e_u))
            self.bound["down"] = self.product(dy.T, none, h, e_h)

    def assert_within(self, found):
        for name, gradient in found.items():
            ratio = ((gradient.double() - self.truth[name]).abs() / self.bound[name]).max().item()
            assert ratio <= 1, f"the gradient of {name} is {ratio} of its bound away"
