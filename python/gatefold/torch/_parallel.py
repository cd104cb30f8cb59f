"""parallelize(module, mesh): gated MLPs divided over devices, by DTensor's column- and row-parallel placements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.distributed import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._shards_wrapper import LocalShardsWrapper
from torch.distributed.tensor.placement_types import Placement, _StridedShard

from . import _collectives
from ._block import Block, Refusal, block_of, obstacle
from ._functions import mlp


@dataclass
class _Parallel:
    """What a divided module carries."""

    block: Block
    mesh: DeviceMesh
    placement: Placement  # of x and of y outside the module
    save_pre_activations: bool
    batch_invariant: bool


def parallelize(module: nn.Module, mesh: DeviceMesh, *, sequence_dim: int | None = None,
                save_pre_activations: bool = False, batch_invariant: bool = False) -> nn.Module:  # fmt: skip
    """Divides intermediate_size of every gated MLP in `module`, or of `module` itself, over a mesh of one dimension.

    Each device keeps its rows of gate and up (of a packed weight its rows of either half) and its columns of down, as
    DTensor parameters of the same names and global shapes, and computes with Gatefold on those. Without sequence_dim
    every device gets the whole x, and the parts of y are summed on all (all-reduce). With it x is divided along that
    dimension, in equal parts, and so is y: all-gather before, reduce-scatter after. x may also be a DTensor; then y is
    one.

    save_pre_activations, batch_invariant: as for gatefold.torch.mlp, each device's part of the products.

    Weights may be loaded before or after: load_state_dict takes whole tensors or DTensors, and
    torch.distributed.checkpoint reads and writes the state_dict by the global shapes. (A packed weight is in it as a
    DTensor of the device's two pieces; the parameter itself is an ordinary one, whose full_tensor() torch 2.11 refuses.)
    Weights on the meta device work too.

    Returns `module`, changed in place. Raises TypeError for what is no module, mesh or number, ValueError for a mesh of
    other dimensions, an intermediate_size that the mesh doesn't divide, or a module without a gated MLP.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module: {type(module).__name__}, not a torch.nn.Module")
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"mesh: {type(mesh).__name__}, not a DeviceMesh")
    if not isinstance(sequence_dim, (int, type(None))):
        raise TypeError(f"sequence_dim: {sequence_dim!r}, not a dimension's number or None")
    if mesh.ndim != 1:
        raise ValueError(f"mesh: {mesh.ndim} dimensions, but intermediate_size is divided over 1")
    found = []
    for name, candidate in module.named_modules():
        try:
            found.append((name, candidate, _divisible_block(candidate, name, mesh)))
        except Refusal:
            continue
    if not found:
        raise ValueError(f"module: a {type(module).__name__} without a gated MLP of plain linear layers")
    placement = Replicate() if sequence_dim is None else Shard(sequence_dim)
    for _, candidate, block in found:
        _divide(candidate, block, mesh)
        vars(candidate).pop("_gatefold", None)
        candidate._gatefold_parallel = _Parallel(block, mesh, placement, save_pre_activations, batch_invariant)
        candidate.forward = partial(_forward, candidate)
    return module


def _divisible_block(module: nn.Module, name: str, mesh: DeviceMesh) -> Block:
    block = block_of(module)
    for layer_name, layer in block.layers(module):
        if reason := obstacle(layer_name, layer):
            raise Refusal(reason)
    width = module._modules[block.down].weight.shape[1]
    if width % mesh.size() != 0:
        raise ValueError(f"{name or type(module).__name__}: intermediate_size {width} is not divisible by the mesh's "
                         f"{mesh.size()} devices")  # fmt: skip
    return block


def _divide(module: nn.Module, block: Block, mesh: DeviceMesh) -> None:
    rows = Shard(0) if block.up is not None else _StridedShard(0, split_factor=2)
    placements = {block.gate: (rows, rows), block.up: (rows, rows), block.down: (Shard(1), Replicate())}
    for name, layer in block.layers(module):
        for what, placement in zip(("weight", "bias"), placements[name]):
            parameter = layer._parameters[what]
            if parameter is not None:
                part = _distributed(parameter.detach(), mesh, placement)
                layer._parameters[what] = nn.Parameter(part, requires_grad=parameter.requires_grad)
        layer.register_load_state_dict_pre_hook(_take_whole_tensors)
        if isinstance(rows, _StridedShard) and name == block.gate:
            layer.register_state_dict_post_hook(_give_pieces)


def _distributed(whole: Tensor, mesh: DeviceMesh, placement: Placement) -> DTensor:
    """A tensor that every device has whole, divided without communication."""
    local = whole
    rank, count = mesh.get_local_rank(), mesh.size()
    if isinstance(placement, _StridedShard):
        local = torch.cat([half.chunk(count)[rank] for half in whole.chunk(2)])
    elif isinstance(placement, Shard):
        local = whole.chunk(count, placement.dim)[rank].clone(memory_format=torch.contiguous_format)
    return DTensor.from_local(local, mesh, [placement], run_check=False, shape=whole.shape, stride=whole.stride())


def _take_whole_tensors(layer: nn.Module, state: dict, prefix: str, *_) -> None:
    """Loads what a checkpoint has: whole tensors, or the pieces that _give_pieces gave."""
    for what, parameter in layer._parameters.items():
        given = state.get(prefix + what)
        if given is None:
            continue
        if not isinstance(given, DTensor):
            if given.shape != parameter.shape:
                continue  # load_state_dict's own message names both
            given = _distributed(given, parameter.device_mesh, parameter.placements[0])
        elif isinstance(given._local_tensor, LocalShardsWrapper):
            local = torch.cat(given._local_tensor.local_shards())
            given = DTensor.from_local(local, parameter.device_mesh, parameter.placements, run_check=False,
                                       shape=parameter.shape, stride=parameter.stride())  # fmt: skip
        state[prefix + what] = given


def _give_pieces(layer: nn.Module, state: dict, prefix: str, *_) -> None:
    """A packed weight as the two pieces of a device, at their places in the whole: so checkpoints read and write them."""
    for what, parameter in layer._parameters.items():
        value = state.get(prefix + what)
        if not isinstance(value, DTensor) or isinstance(value._local_tensor, LocalShardsWrapper):
            continue
        pieces = value._local_tensor.chunk(2)
        first = value.device_mesh.get_local_rank() * pieces[0].shape[0]
        rest = (0,) * (value.ndim - 1)
        offsets = [(first, *rest), (value.shape[0] // 2 + first, *rest)]
        wrapped = LocalShardsWrapper(list(pieces), offsets)
        state[prefix + what] = DTensor.from_local(wrapped, value.device_mesh, [Shard(0)], run_check=False,
                                                  shape=value.shape, stride=value.stride())  # fmt: skip


def _forward(self: nn.Module, x: Tensor) -> Tensor:
    carried: _Parallel = self._gatefold_parallel
    if isinstance(carried.placement, Shard) and not -x.ndim <= carried.placement.dim < x.ndim:
        raise ValueError(f"sequence_dim: {carried.placement.dim}, but x has {x.ndim} dimensions")
    if isinstance(x, DTensor) or torch.is_grad_enabled():
        return _differentiable(self, carried, x)
    # DTensor's own bookkeeping costs more than a small block: without gradients the collectives are called directly.
    if isinstance(carried.placement, Replicate):
        y = _collectives.all_reduce(_part(self, carried, x), carried.mesh)
    else:
        dim = carried.placement.dim % x.ndim
        whole = _collectives.all_gather(x, dim, carried.mesh)
        y = _collectives.reduce_scatter(_part(self, carried, whole), dim, carried.mesh)
    return _with_bias(y, _local(self._modules[carried.block.down].bias))


def _differentiable(module: nn.Module, carried: _Parallel, x: Tensor) -> Tensor:
    is_distributed = isinstance(x, DTensor)
    if not is_distributed:
        x = DTensor.from_local(x, carried.mesh, [carried.placement], run_check=False)
    outside = x.placements
    # Every device's gradient of x is a part of the sum.
    whole = x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
    part = _part(module, carried, whole)
    y = DTensor.from_local(part, carried.mesh, [Partial()], run_check=False).redistribute(placements=outside)
    y = _with_bias(y, module._modules[carried.block.down].bias)
    return y if is_distributed else y.to_local()


def _with_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """y and down's bias, in y's type: under autocast the parameter has another."""
    return y if bias is None else y + bias.to(y.dtype)


def _part(module: nn.Module, carried: _Parallel, x: Tensor) -> Tensor:
    """This device's part of the sum that y is."""
    block, layers = carried.block, module._modules
    gate, up = layers[block.gate], layers[block.up] if block.up is not None else None
    return mlp(
        x, _local(gate.weight), None if up is None else _local(up.weight), _local(layers[block.down].weight),
        layout=block.layout, activation=block.activation, gate_bias=_local(gate.bias),
        up_bias=None if up is None else _local(up.bias), save_pre_activations=carried.save_pre_activations,
        batch_invariant=carried.batch_invariant,
    )  # fmt: skip


def _local(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.to_local()
