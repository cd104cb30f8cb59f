"""GatedMLP: the layer, with Hugging Face's parameter names."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .. import Activation
from ._functions import mlp
from ._how import how


class GatedMLP(nn.Module):
    """down_proj(act(gate_proj(x)) * up_proj(x)), from [..., hidden_size] to [..., hidden_size].

    Its parameters are called as Hugging Face's models call theirs, so their state_dict loads unchanged: gate_proj,
    up_proj and down_proj, or with packed=True gate_up_proj (gate's rows, then up's) and down_proj, each with `weight` and,
    with bias=True, `bias`.
    """

    def __init__(self, hidden_size: int, intermediate_size: int, *, activation: Activation = "silu", bias: bool = False,
                 packed: bool = False, save_pre_activations: bool = False, batch_invariant: bool = False,
                 device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> None:  # fmt: skip
        super().__init__()
        self.layout = "gate_up" if packed else "separate"
        how(self.layout, 0, activation, None, batch_invariant)  # refuses a wrong one here, not at the first call
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.save_pre_activations = save_pre_activations
        self.batch_invariant = batch_invariant
        options = {"bias": bias, "device": device, "dtype": dtype}
        if packed:
            self.gate_up_proj = nn.Linear(hidden_size, 2 * intermediate_size, **options)
        else:
            self.gate_proj = nn.Linear(hidden_size, intermediate_size, **options)
            self.up_proj = nn.Linear(hidden_size, intermediate_size, **options)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, **options)

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., hidden_size]. Returns the same shape."""
        packed = self.layout != "separate"
        gate, up = (self.gate_up_proj, None) if packed else (self.gate_proj, self.up_proj)
        return mlp(
            x, gate.weight, None if packed else up.weight, self.down_proj.weight, layout=self.layout,
            activation=self.activation, gate_bias=gate.bias, up_bias=None if packed else up.bias,
            down_bias=self.down_proj.bias, save_pre_activations=self.save_pre_activations,
            batch_invariant=self.batch_invariant,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}, layout={self.layout!r}"
