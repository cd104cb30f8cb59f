"""Stateless layers in the form that Hugging Face's `kernels` package maps onto a model's own.

Each is a forward alone, which is put in the place of a layer's: `self` is then that layer, with its weights.
"""

from __future__ import annotations

from torch import Tensor, nn

from ._block import activation_of
from ._functions import mlp

__all__ = ["PackedGatedMLP", "SeparateGatedMLP"]


def _activation(layer: nn.Module) -> str:
    name = activation_of(layer)
    if name is None:
        raise ValueError(f"activation: a {type(layer).__name__}, not one that Gatefold has")
    return name


class SeparateGatedMLP(nn.Module):
    """The forward of LlamaMLP and its like: gate_proj, up_proj, down_proj, act_fn."""

    has_backward = True
    can_torch_compile = True

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = self.gate_proj, self.up_proj, self.down_proj
        return mlp(x, gate.weight, up.weight, down.weight, layout="separate", activation=_activation(self.act_fn),
                   gate_bias=gate.bias, up_bias=up.bias, down_bias=down.bias)  # fmt: skip


class PackedGatedMLP(nn.Module):
    """The forward of Phi3MLP, Glm4MLP and their like: gate_up_proj, down_proj, activation_fn."""

    has_backward = True
    can_torch_compile = True

    def forward(self, hidden_states: Tensor) -> Tensor:
        packed, down = self.gate_up_proj, self.down_proj
        return mlp(hidden_states, packed.weight, None, down.weight, layout="gate_up",
                   activation=_activation(self.activation_fn), gate_bias=packed.bias, down_bias=down.bias)  # fmt: skip
