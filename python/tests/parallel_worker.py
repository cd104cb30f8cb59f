"""One process of several: `parallel_worker.py RANK WORLD FOLDER`. An assertion that fails ends it with a status.

Small integers, relu: every sum is exact in fp32, so whatever its order, equality is required.
"""

import copy
import os
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

import gatefold.torch as gt

# Torch warns whoever called it: no call of the package's may be one that it will drop.
warnings.filterwarnings("error", category=FutureWarning, module="gatefold")
D, F, T = 16, 24, 8
# It divides the halves of a packed weight, but doesn't put them together again.
IS_OLD = tuple(int(number) for number in torch.__version__.split(".")[:2]) < (2, 15)


def integers(*shape):
    return torch.randint(-2, 3, shape).float()


def layer(packed, bias):
    made = gt.GatedMLP(D, F, activation="relu", packed=packed, bias=bias)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(integers(*parameter.shape))
    return made


def part(tensor, dim, rank, world):
    return tensor.chunk(world, dim)[rank].contiguous()


def is_divided(divided, whole, rank, world):
    """Whether a parameter, or its gradient, is its device's part of the whole tensor."""
    (placement,) = divided.placements
    if not isinstance(placement, _StridedShard):
        return torch.equal(divided.full_tensor(), whole)
    mine = torch.cat([part(half, 0, rank, world) for half in whole.chunk(2)])
    return torch.equal(divided.to_local(), mine) and (IS_OLD or torch.equal(divided.full_tensor(), whole))


def check_forward_and_backward(mesh, rank, world):
    for packed in (False, True):
        for bias in (False, True):
            for sequence_dim in (None, 0, 1, -2):
                for save in (False, True):
                    one = layer(packed, bias)
                    many = gt.parallelize(copy.deepcopy(one), mesh, sequence_dim=sequence_dim, save_pre_activations=save)
                    x, dy = integers(4, T, D), integers(4, T, D)
                    whole = x.clone().requires_grad_()
                    y = one(whole)
                    y.backward(dy)
                    cut = (lambda t: t) if sequence_dim is None else (lambda t: part(t, sequence_dim, rank, world))  # noqa: B023
                    mine = cut(x).clone().requires_grad_()
                    found = many(mine)
                    found.backward(cut(dy))
                    assert torch.equal(found, cut(y))
                    with torch.no_grad():  # another way
                        assert torch.equal(many(mine), cut(y))
                    assert torch.equal(mine.grad, cut(whole.grad))
                    for (name, divided), parameter in zip(many.named_parameters(), one.parameters()):
                        assert divided.shape == parameter.shape
                        assert is_divided(divided, parameter, rank, world), name
                        assert is_divided(divided.grad, parameter.grad, rank, world), name
                        if "down_proj.bias" not in name:
                            assert divided.to_local().numel() * world == parameter.numel()


def check_compiled(mesh, rank, world):
    one = layer(True, True)
    x = integers(4, T, D)
    for sequence_dim in (None, 0, 1):
        many = gt.parallelize(copy.deepcopy(one), mesh, sequence_dim=sequence_dim)
        cut = (lambda t: t) if sequence_dim is None else (lambda t: part(t, sequence_dim, rank, world))  # noqa: B023
        with torch.no_grad():
            found = torch.compile(many, fullgraph=True, backend="aot_eager")(cut(x))
        assert torch.equal(found, cut(one(x)))
        torch.compiler.reset()


def check_autocast(mesh, rank, world):
    """y has the type that one device's has: down's bias, a parameter of another type, must not raise it."""
    one = layer(True, True)
    many = gt.parallelize(copy.deepcopy(one), mesh)
    x = integers(T, D)
    with torch.autocast("cpu", torch.bfloat16):
        y = one(x)
        for with_gradients in (False, True):
            with torch.set_grad_enabled(with_gradients):
                found = many(x)
            assert found.dtype == y.dtype == torch.bfloat16
            # h, a part, y and its sum with the bias are rounded, each by at most 2^-9, in either of two results.
            assert (found.float() - y.float()).norm() <= 8 * 2.0**-9 * y.float().norm()


def check_distributed_input(mesh):
    one = layer(True, True)
    many = gt.parallelize(copy.deepcopy(one), mesh)
    x = integers(T, D)
    y = many(distribute_tensor(x, mesh, [Replicate()]))
    assert isinstance(y, DTensor) and torch.equal(y.full_tensor(), one(x))


def check_optimizer(mesh):
    one = layer(True, True)
    many = gt.parallelize(copy.deepcopy(one), mesh)
    x = integers(T, D)
    for model in (one, many):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        model(x).sum().backward()
        optimizer.step()
    for divided, parameter in zip(many.parameters(), one.parameters()):
        assert is_divided(divided, parameter, mesh.get_local_rank(), mesh.size())


def check_checkpoints(mesh, folder):
    for packed in (False, True):
        one = layer(packed, True)
        x = integers(T, D)
        checkpoint.save(one.state_dict(), checkpoint_id=folder / f"one{packed}")
        # Written by one, read by many.
        many = gt.parallelize(layer(packed, True), mesh)
        assert not torch.equal(many(x), one(x))
        state = many.state_dict()
        checkpoint.load(state, checkpoint_id=folder / f"one{packed}")
        many.load_state_dict(state)
        assert torch.equal(many(x), one(x))
        # Written by many, read by one.
        checkpoint.save(many.state_dict(), checkpoint_id=folder / f"many{packed}")
        again = layer(packed, True)
        state = again.state_dict()
        checkpoint.load(state, checkpoint_id=folder / f"many{packed}")
        again.load_state_dict(state)
        assert torch.equal(again(x), one(x))
        # Whole tensors, after parallelize, and into weights that were never there.
        later = gt.parallelize(layer(packed, True), mesh)
        later.load_state_dict(one.state_dict())
        assert torch.equal(later(x), one(x))
        with torch.device("meta"):
            empty = gt.GatedMLP(D, F, activation="relu", packed=packed, bias=True)
        empty = gt.parallelize(empty, mesh).to_empty(device="cpu")
        empty.load_state_dict(one.state_dict())
        assert torch.equal(empty(x), one(x))


def check_models(mesh):
    import transformers

    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
    ids = torch.arange(3, 40)[None]
    for name in ("Llama", "Phi3"):
        config = getattr(transformers, f"{name}Config")(**sizes)
        model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
        truth = copy.deepcopy(model).double()
        with torch.no_grad():
            stock, exact = model(ids).logits, truth(ids).logits
            gt.patch(model)
            found = gt.parallelize(model, mesh)(ids).logits
        # No farther from double precision than the stock model, whose sums are of the same length.
        assert (found - exact).norm() <= 2 * (stock - exact).norm() + 2.0**-24 * exact.norm()


def check_refusals(mesh, world):
    def message(call):
        try:
            call()
        except ValueError as error:
            return str(error)
        raise AssertionError("not refused")

    uneven = gt.GatedMLP(D, F + 1)
    assert f"intermediate_size {F + 1} is not divisible by the mesh's {world}" in message(
        lambda: gt.parallelize(torch.nn.Sequential(uneven), mesh))  # fmt: skip
    assert type(uneven.gate_proj.weight) is torch.nn.Parameter  # nothing was changed
    assert "without a gated MLP" in message(lambda: gt.parallelize(torch.nn.Linear(3, 3), mesh))
    square = init_device_mesh("cpu", (world // 2, 2))
    assert "mesh: 2 dimensions" in message(lambda: gt.parallelize(layer(True, True), square))


def main(rank, world, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("gloo", rank=rank, world_size=world, store=store)
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(int((folder / "seed").read_text()))
    check_forward_and_backward(mesh, rank, world)
    check_compiled(mesh, rank, world)
    check_autocast(mesh, rank, world)
    check_distributed_input(mesh)
    check_optimizer(mesh)
    check_checkpoints(mesh, folder)
    check_models(mesh)
    check_refusals(mesh, world)
    dist.barrier()
    dist.destroy_process_group()
    # An interpreter that takes itself down beside gloo's threads is aborted now and then: "terminate called without an
    # active exception".
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
