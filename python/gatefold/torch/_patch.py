"""patch(model): gated MLPs computed by Gatefold, where they are exactly that, with a way back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial

from torch import Tensor, nn

from ._block import Block, Refusal, find_block, obstacle

# The names of Transformers' gated MLPs' layers: a module that has them and is left alone is reported.
_NAMES = ({"gate_proj", "up_proj", "down_proj"}, {"gate_up_proj", "down_proj"})


@dataclass(frozen=True)
class Changed:
    """A module whose forward Gatefold computes."""

    name: str
    kind: str
    layout: str
    activation: str


@dataclass(frozen=True)
class LeftAlone:
    """A module that looks like a gated MLP and keeps its forward."""

    name: str
    kind: str
    reason: str


@dataclass
class PatchReport:
    """What `patch` changed and what it left alone; `undo()` puts everything back."""

    changed: list[Changed] = field(default_factory=list)
    left_alone: list[LeftAlone] = field(default_factory=list)
    _modules: list[nn.Module] = field(default_factory=list, repr=False)

    def undo(self) -> None:
        """Gives every module its own forward back. A second call does nothing."""
        while self._modules:
            module = self._modules.pop()
            if _is_patched(module):
                del module.forward, module._gatefold

    def __str__(self) -> str:
        lines = [f"{len(self.changed)} changed, {len(self.left_alone)} left alone"]
        lines += [f"  {c.name} ({c.kind}): {c.activation}, weights {c.layout}" for c in self.changed]
        lines += [f"  {left.name} ({left.kind}) left alone: {left.reason}" for left in self.left_alone]
        return "\n".join(lines)


@dataclass
class _Patch:
    """What a patched module carries."""

    block: Block
    save_pre_activations: bool
    batch_invariant: bool
    has_warned: bool = False


def patch(model: nn.Module, *, save_pre_activations: bool = False, batch_invariant: bool = False,
          strict: bool = False) -> PatchReport:  # fmt: skip
    """Lets Gatefold compute every gated MLP in `model`, weights where they are: nothing is copied or repacked.

    A module is changed if its forward, traced, is down(act(gate(x)) * up(x)) with plain torch.nn.Linear layers (gate and
    up may be the halves of one) and an activation that Gatefold has, whatever its class and its layers are called.
    Everything else is left alone. The report says what and why: quantised weights, adapters, hooks on the layers,
    multipliers, tensor subclasses, element types. Should a layer become such afterwards, the module steps aside: its
    own forward runs, with one warning.

    save_pre_activations, batch_invariant: as for gatefold.torch.mlp.
    strict: raise RuntimeError, with nothing changed, if a module that looks like a gated MLP would be left alone.
    Raises TypeError for what is no module, ValueError where a module and its configuration disagree.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: {type(model).__name__}, not a torch.nn.Module")
    report = PatchReport()
    found: list[tuple[nn.Module, Block]] = []
    for name, module in model.named_modules():
        names = set(module._modules)
        looks_gated = any(wanted <= names for wanted in _NAMES)
        if not looks_gated and sum(type(child) is nn.Linear for child in module.children()) not in (2, 3):
            continue
        kind = type(module).__name__
        try:
            block = _checked_block(name, module)
        except Refusal as refusal:
            if looks_gated:
                report.left_alone.append(LeftAlone(name, kind, str(refusal)))
            continue
        found.append((module, block))
        report.changed.append(Changed(name, kind, block.layout, block.activation))
    if strict and report.left_alone:
        raise RuntimeError(f"strict, but modules would be left alone: {report}")
    for module, block in found:
        module._gatefold = _Patch(block, save_pre_activations, batch_invariant)
        module.forward = partial(_forward, module)  # unlike a method, it can be pickled
        report._modules.append(module)
    return report


def _checked_block(name: str, module: nn.Module) -> Block:
    if _is_patched(module):
        raise Refusal("already patched")
    # Layers first: an adapter or a quantised layer is the reason, not what a trace makes of it.
    for child_name, child in module._modules.items():
        if child_name in _NAMES[0] | _NAMES[1] and (reason := obstacle(child_name, child)):
            raise Refusal(reason)
    block = find_block(module)
    layers = block.layers(module)
    for layer_name, layer in layers:
        if reason := obstacle(layer_name, layer):
            raise Refusal(reason)
    dtypes = {layer_name: layer.weight.dtype for layer_name, layer in layers}
    if len(set(dtypes.values())) != 1:
        raise Refusal(f"element types differ: {dtypes}")
    _require_agreement(name, module, block)
    return block


def _require_agreement(name: str, module: nn.Module, block: Block) -> None:
    """Refuses a module whose layers contradict what it says of itself."""
    gate, down = module._modules[block.gate], module._modules[block.down]
    width = gate.weight.shape[0] // (1 if block.up is not None else 2)
    said = getattr(module, "intermediate_size", None)
    if isinstance(said, int) and said != width:
        raise ValueError(f"{name}.intermediate_size is {said}, but {block.gate} has {width} rows for it")
    if down.weight.shape[1] != width:
        raise ValueError(f"{name}.{block.down} takes {down.weight.shape[1]} columns, but {block.gate} gives {width}")
    config = getattr(module, "config", None)
    names = [getattr(config, key, None) for key in ("hidden_act", "hidden_activation")]
    names = [said for said in names if isinstance(said, str)]
    if names and block.activation not in {_CONFIGURED.get(said, said) for said in names}:
        raise ValueError(f"{name}.config says {' or '.join(names)}, but its activation is {block.activation}")


# Names of activations in configurations, where they aren't Gatefold's.
_CONFIGURED = {
    "swish": "silu", "gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_python_tanh": "gelu_tanh",
    "linear": "identity",
}  # fmt: skip


def _is_patched(module: nn.Module) -> bool:
    return "_gatefold" in module.__dict__


def _forward(self: nn.Module, x: Tensor) -> Tensor:
    carried = self._gatefold
    for name, layer in carried.block.layers(self):
        reason = obstacle(name, layer)
        if reason is not None:
            return _step_aside(self, carried, reason, x)
    return carried.block.run(self, x, carried.save_pre_activations, carried.batch_invariant)


def _step_aside(module: nn.Module, carried: _Patch, reason: str, x: Tensor) -> Tensor:
    if not carried.has_warned:
        carried.has_warned = True
        warnings.warn(f"gatefold.torch.patch: {type(module).__name__} steps aside for its own forward: {reason}",
                      RuntimeWarning, stacklevel=3)  # fmt: skip
    return type(module).forward(module, x)
