"""Gatefold on PyTorch tensors: `import gatefold.torch`.

The arguments are those of the functions on NumPy arrays (`help(gatefold)`), but for these:

* Tensors are of float32, float16 or bfloat16, all of a call of one type on one device, and may have any number of
  leading dimensions (batch, sequence) where x has tokens. Tensors whose rows lie apart are read where they lie. A copy
  is made only where the last dimension isn't dense, or where rows overlap or lie at more than one distance.
* Gradients: first derivatives in backward mode. Forward mode and second derivatives are refused. With `out` no gradient
  can be had.
* torch.autocast casts the arguments of gemm_gated, gate_up and mlp, as it casts those of torch.nn.functional.linear.
* torch.func: vmap over any of the arguments, grad, vjp and jacrev, also one inside the other. A batch of x alone is one
  call of more tokens, one of weights a call for each.
* torch.compile(fullgraph=True) and torch.export take the functions as they are; CUDA tensors compute on the current
  stream of their device.

`patch(model)` lets Gatefold compute the gated MLPs of a model that is there, e.g. of Transformers; GatedMLP is such a
layer for a model of your own. `parallelize(module, mesh)` divides them over devices.

A call on the CPU works on as many threads as torch.get_num_threads() says.
"""

from . import _rules  # noqa: F401  (registers them)
from ._functions import act_and_mul, gate_up, gemm_gated, mlp
from ._module import GatedMLP
from ._patch import PatchReport, patch

__all__ = ["GatedMLP", "PatchReport", "act_and_mul", "gate_up", "gemm_gated", "mlp", "parallelize", "patch"]


def __getattr__(name: str) -> object:
    """parallelize brings torch.distributed with it, which not every torch has: imported where it is asked for."""
    if name == "parallelize":
        from ._parallel import parallelize

        return parallelize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
