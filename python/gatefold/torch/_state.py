"""What surrounds a call: gradients, autocast, forward-mode differentiation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

_is_grad_enabled = torch.is_grad_enabled
_is_transformed = torch._C._are_functorch_transforms_active
_CAST = (torch.float32, torch.float16, torch.bfloat16)


def needs_gradient(*tensors: Tensor | None) -> bool:
    """True where a gradient may be asked for. Refuses tangents, for which there is no rule."""
    if forward_ad._current_level >= 0:
        _refuse_tangents(tensors)
    if not _is_grad_enabled():
        return False
    try:
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    except AttributeError:  # no tensor: the operator refuses it by its name
        return False
    return _is_transformed()  # a tensor that torch.func.vmap passes on doesn't say what it is a batch of


def _refuse_tangents(tensors: tuple[Tensor | None, ...]) -> None:
    for tensor in tensors:
        if isinstance(tensor, Tensor) and forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError("gatefold.torch: forward-mode differentiation of a tensor of shape "
                                      f"{list(tensor.shape)}, but there is backward mode alone")  # fmt: skip


def under_autocast(*tensors: Tensor | None) -> list[Tensor | None]:
    """The tensors as torch.nn.functional.linear would take them here: in autocast's element type where it is on."""
    device = next((tensor.device.type for tensor in tensors if isinstance(tensor, Tensor)), "cpu")
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device)
    return [t.to(dtype) if isinstance(t, Tensor) and t.dtype in _CAST else t for t in tensors]


def mark_written(out: Tensor) -> Tensor:
    """Tells autograd of a write, so that a backward that had saved `out` refuses."""
    if not torch.compiler.is_compiling() and not out.is_inference():
        torch.autograd.graph.increment_version(out)
    return out


def require_output(out: Tensor, **tensors: Tensor | None) -> None:
    """An output that the caller gives can't be differentiated, and is written as it lies in memory."""
    # Torch fails on one, and then reads memory that isn't its own. (Where it compiles it refuses one itself.)
    if not torch.compiler.is_compiling() and isinstance(out, Tensor) and out.is_neg():
        raise RuntimeError("out: a negative view (is_neg() is true), but its memory is written as it is: give "
                           "out.resolve_neg()")  # fmt: skip
    for name, tensor in {**tensors, "out": out}.items():
        if needs_gradient(tensor) and getattr(tensor, "requires_grad", False):  # the former alone under torch.func
            raise RuntimeError(f"out: a tensor to write, but {name} requires a gradient: leave out out=, or call this "
                               "under torch.no_grad()")  # fmt: skip
