"""A gated MLP inside a module: which of its layers is which, read off its own forward, and when it may be fused."""

from __future__ import annotations

import operator
from typing import NamedTuple

import torch
from torch import Tensor, fx, nn

from ._functions import mlp
from ._module import GatedMLP

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)

# Activation layers by their class, and the functions that forwards call.
_LAYERS = {nn.SiLU: "silu", nn.ReLU: "relu", nn.Sigmoid: "sigmoid", nn.Identity: "identity"}
_TRANSFORMERS = {
    "SiLUActivation": "silu", "GELUActivation": "gelu_erf", "GELUTanh": "gelu_tanh", "PytorchGELUTanh": "gelu_tanh",
    "NewGELUActivation": "gelu_tanh", "FastGELUActivation": "gelu_tanh", "AccurateGELUActivation": "gelu_tanh",
    "LinearActivation": "identity",
}  # fmt: skip
_FUNCTIONS = {
    nn.functional.silu: "silu", nn.functional.relu: "relu", torch.relu: "relu", nn.functional.sigmoid: "sigmoid",
    torch.sigmoid: "sigmoid",
}  # fmt: skip


class Refusal(Exception):
    """Why a module is left alone."""


class Block(NamedTuple):
    """down(act(gate(x)) * up(x)): the names of the layers. Of a packed layer `gate` has both halves, and up is None."""

    gate: str
    up: str | None
    down: str
    layout: str
    activation: str

    def layers(self, module: nn.Module) -> list[tuple[str, nn.Module]]:
        """The layers by name, as the module has them now."""
        return [(name, module._modules[name]) for name in (self.gate, self.up, self.down) if name is not None]

    def run(self, module: nn.Module, x: Tensor, save_pre_activations: bool, batch_invariant: bool) -> Tensor:
        """The module's output."""
        layers = module._modules
        gate, down = layers[self.gate], layers[self.down]
        up = layers[self.up] if self.up is not None else None
        return mlp(
            x, gate.weight, None if up is None else up.weight, down.weight, layout=self.layout,
            activation=self.activation, gate_bias=gate.bias, up_bias=None if up is None else up.bias,
            down_bias=down.bias, save_pre_activations=save_pre_activations, batch_invariant=batch_invariant,
        )  # fmt: skip


def activation_of(layer: nn.Module) -> str | None:
    """The name of an activation layer, None for one that there is no name for."""
    kind = type(layer)
    if kind is nn.GELU:
        return "gelu_tanh" if layer.approximate == "tanh" else "gelu_erf"
    if kind.__module__ == "transformers.activations":
        return _TRANSFORMERS.get(kind.__name__)
    return _LAYERS.get(kind)


def obstacle(name: str, layer: nn.Module) -> str | None:
    """Why a linear layer's own forward has to run; None if its weight and bias are all there is to it."""
    kind = type(layer)
    if kind is not nn.Linear:
        adapter = " (an adapter)" if kind.__module__.startswith("peft.") else ""
        return f"{name} is a {kind.__module__}.{kind.__qualname__}{adapter}, not a torch.nn.Linear"
    if layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks:
        return f"{name} has hooks"
    if "forward" in layer.__dict__:
        return f"{name} has a forward of its own"
    weight, bias = layer._parameters.get("weight"), layer._parameters.get("bias")
    if weight is None:
        return f"{name} has no weight as a parameter"
    for what, tensor in (("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if type(tensor) is not nn.Parameter:  # a parameter that holds a tensor of a subclass is of that class
            return f"{name}.{what} is a {type(tensor).__name__}, not a plain tensor"
        if tensor.dtype not in _DTYPES:
            return f"{name}.{what} has dtype {tensor.dtype}, not one of float32, float16, bfloat16"
    return None


def find_block(module: nn.Module) -> Block:
    """The gated MLP that a module's forward is. Raises Refusal where it is another function, or can't be read."""
    if "forward" in module.__dict__:
        raise Refusal("its forward was replaced on the instance")
    tracer = _Tracer()
    try:
        graph = tracer.trace(module)
    except Exception as error:  # whatever a foreign forward raises when it is given no tensor
        raise Refusal(f"its forward can't be traced: {type(error).__name__}") from error
    return _match(module, graph)


def block_of(module: nn.Module) -> Block:
    """find_block's answer, but for modules that know it: GatedMLP and those that are patched."""
    if isinstance(module, GatedMLP):
        names = ("gate_proj", "up_proj") if module.layout == "separate" else ("gate_up_proj", None)
        return Block(*names, "down_proj", module.layout, module.activation)
    if "_gatefold" in module.__dict__:
        return module._gatefold.block
    return find_block(module)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, layer: nn.Module, name: str) -> bool:
        return True


def _match(module: nn.Module, graph: fx.Graph) -> Block:
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise Refusal(f"its forward has {len(inputs)} arguments, not 1")
    (x,) = inputs
    output = next(node for node in graph.nodes if node.op == "output").args[0]
    down, product = _layer_call(output)
    if not isinstance(product, fx.Node) or product.target not in (operator.mul, torch.mul) or len(product.args) != 2:
        raise Refusal("its forward doesn't end in a layer of a product")
    for activated, linear in (product.args, product.args[::-1]):
        found = _activated(module, activated)
        if found is None:
            continue
        activation, gate = found
        separate = _layer_of(gate, x), _layer_of(linear, x)
        if None not in separate:
            used, block = 6, Block(*separate, down, "separate", activation)
        else:
            packed, layout = _packed(gate, linear, x)
            used, block = 8, Block(packed, None, down, layout, activation)
        if len(graph.nodes) != used + 1:
            raise Refusal(f"its forward has {len(graph.nodes)} steps, not the {used + 1} of a gated MLP")
        return block
    raise Refusal("its forward has no activation that Gatefold has")


def _layer_call(node) -> tuple[str, fx.Node]:
    if not isinstance(node, fx.Node) or node.op != "call_module" or len(node.args) != 1 or node.kwargs:
        raise Refusal("its forward doesn't end in a layer")
    return node.target, node.args[0]


def _layer_of(node, x: fx.Node) -> str | None:
    """The name of the layer that was called on x."""
    called = isinstance(node, fx.Node) and node.op == "call_module" and node.args == (x,) and not node.kwargs
    return node.target if called else None


def _activated(module: nn.Module, node) -> tuple[str, fx.Node] | None:
    """An activation and what it was called on."""
    if not isinstance(node, fx.Node) or len(node.args) != 1:
        return None
    name = None
    if node.op == "call_module":
        name = activation_of(module.get_submodule(node.target))
    elif node.op == "call_function" and node.target is nn.functional.gelu:
        name = "gelu_tanh" if node.kwargs.get("approximate", "none") == "tanh" else "gelu_erf"
    elif node.op == "call_function":
        name = _FUNCTIONS.get(node.target)
    return None if name is None else (name, node.args[0])


def _packed(gate, up, x: fx.Node) -> tuple[str, str]:
    """The layer whose output was cut into halves, and their order."""
    for node in (gate, up):
        if not isinstance(node, fx.Node) or node.target is not operator.getitem:
            raise Refusal("gate and up are neither two layers of its input nor the halves of one")
    whole, order = gate.args[0], (gate.args[1], up.args[1])
    name = None
    if up.args[0] is whole and whole.target in ("chunk", torch.chunk):
        dim = whole.kwargs.get("dim", whole.args[2] if len(whole.args) > 2 else 0)
        name = _layer_of(whole.args[0], x) if whole.args[1:2] == (2,) and dim == -1 else None
    if name is None or order not in ((0, 1), (1, 0)):
        raise Refusal("gate and up are not the two halves of one layer")
    return name, "gate_up" if order == (0, 1) else "up_gate"
