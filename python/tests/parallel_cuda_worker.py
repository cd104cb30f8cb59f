"""One process of several, with a GPU each: `parallel_cuda_worker.py RANK WORLD FOLDER`. An assertion that fails ends it
with a status.

Small integers, relu: every sum is exact in fp32, so whatever its order, equality is required.
"""

import copy
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import gatefold.torch as gt

D, F = 256, 512
TOKENS = (1, 3, 256, 257, 3000, 5)
# gate, up, h, a part and their sum are rounded to bf16 or fp16, each by at most 2^-9, in either of two results.
MOST_DISTANCE = 12 * 2.0**-9


def integers(*shape, most=2):
    return torch.randint(-most, most + 1, shape, device="cuda").float()


def layer(dtype=torch.float32, bias=True):
    made = gt.GatedMLP(D, F, activation="relu", bias=bias, device="cuda")
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(integers(*parameter.shape, most=1))  # sums stay below 2^24
    return made.to(dtype)


def divided(one, mesh, **options):
    return gt.parallelize(copy.deepcopy(one), mesh, **options)


def require(found, expected):
    assert torch.equal(found, expected), (found - expected).abs().max()


def check_sums(mesh):
    one = layer()
    many = divided(one, mesh)
    with torch.no_grad():
        for tokens in TOKENS:
            x = integers(tokens, D)
            found = [many(x + i) for i in range(3)]  # each y is its caller's, whatever comes after
            for i, y in enumerate(found):
                require(y, one(x + i))
        x = integers(2, 7, D)
        require(many(x), one(x))
        assert many(x[:0]).shape == (0, 7, D)
    with torch.inference_mode():
        require(many(x), one(x))
    require(many(x).detach(), one(x).detach())  # with gradients


def check_other_types(mesh):
    for dtype in (torch.bfloat16, torch.float16):
        one = layer(dtype)
        many = divided(one, mesh)
        for tokens in TOKENS:
            x = torch.randn(tokens, D, device="cuda", dtype=dtype)
            with torch.no_grad():
                y, found = one(x), many(x)
            assert found.dtype == dtype
            assert (found.float() - y.float()).norm() <= MOST_DISTANCE * y.float().norm()
            parts = [torch.empty_like(found) for _ in range(mesh.size())]
            dist.all_gather(parts, found)
            assert all(torch.equal(part, found) for part in parts)  # devices that disagree drift apart


def check_graphs(mesh):
    one = layer()
    many = divided(one, mesh)
    x, stream = integers(300, D), torch.cuda.Stream()
    with torch.no_grad():
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            many(x)
            torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = many(x)
        for _ in range(3):
            x.copy_(integers(300, D))
            graph.replay()
            require(y, one(x))


def check_streams(mesh):
    one = layer()
    many = divided(one, mesh)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    xs = [integers(3000, D) for _ in range(8)]
    torch.cuda.synchronize()
    with torch.no_grad():
        found = []
        for i, x in enumerate(xs):
            with torch.cuda.stream(streams[i % 2]):
                found.append(many(x))
        torch.cuda.synchronize()
        for x, y in zip(xs, found):
            require(y, one(x))


def check_sequence(mesh, rank, world):
    one = layer()
    x = integers(8, 2 * world, D)
    for dim in (0, 1, -2):
        many = divided(one, mesh, sequence_dim=dim)
        with torch.no_grad():
            require(many(x.chunk(world, dim)[rank]), one(x).chunk(world, dim)[rank])


def main(rank, world, folder):
    torch.cuda.set_device(rank)
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("nccl", rank=rank, world_size=world, store=store)
    mesh = init_device_mesh("cuda", (world,))
    torch.manual_seed(int((folder / "seed").read_text()))
    check_sums(mesh)
    check_other_types(mesh)
    check_graphs(mesh)
    check_streams(mesh)
    check_sequence(mesh, rank, world)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # as parallel_worker.py


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
