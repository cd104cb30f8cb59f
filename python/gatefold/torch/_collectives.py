"""What the devices of a divided MLP send each other where no gradient is asked for: parts of x, and parts of y.

Straight from torch.distributed, which DTensor and its functional collectives call too, at a cost of their own that is
more than a small block takes. torch.compile turns these calls into the functional ones.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import DeviceMesh


def all_reduce(part: Tensor, mesh: DeviceMesh) -> Tensor:
    """The sum over the devices, in `part` itself."""
    dist.all_reduce(part, group=mesh.get_group())
    return part


def all_gather(part: Tensor, dim: int, mesh: DeviceMesh) -> Tensor:
    """The devices' parts, of the same shape, one behind the other along `dim`."""
    parts = part.new_empty(mesh.size(), *part.shape)
    dist.all_gather_into_tensor(parts.flatten(0, 1), part.contiguous(), group=mesh.get_group())
    return parts.movedim(0, dim).flatten(dim, dim + 1)


def reduce_scatter(whole: Tensor, dim: int, mesh: DeviceMesh) -> Tensor:
    """This device's part along `dim` of the sum over the devices."""
    count = mesh.size()
    parts = whole.unflatten(dim, (count, whole.shape[dim] // count)).movedim(dim, 0).contiguous()
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter_tensor(mine, parts.flatten(0, 1), group=mesh.get_group())
    return mine
