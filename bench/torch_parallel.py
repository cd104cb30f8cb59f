#!/usr/bin/env python3
"""A gated MLP over several devices against one: time, the share of communication, efficiency.

torchrun --nproc-per-node 8 bench/torch_parallel.py                       # Llama 70B's block, NCCL
torchrun --nproc-per-node 2 bench/torch_parallel.py --device cpu --hidden-size 512 --intermediate-size 1536

Each figure is the median of rounds in which the three ways alternate; of a round's times the slowest device's counts.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import gatefold.torch as gt

ROUND_SECONDS = 0.05


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--hidden-size", type=int, default=8192)
    parser.add_argument("--intermediate-size", type=int, default=28672)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 512, 8192])
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args()


def seconds(call, count: int, device: str) -> float:
    """Per call, on the slowest device."""
    synchronize = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    dist.barrier()
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    slowest = torch.tensor([(time.perf_counter() - start) / count], device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def measure(ways: dict, rounds: int, device: str) -> dict[str, float]:
    counts = {name: max(1, int(ROUND_SECONDS / seconds(call, 3, device))) for name, call in ways.items()}
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            times[name].append(seconds(call, counts[name], device))
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    given = options()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if given.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if given.device == "cuda" else "gloo")
    mesh = init_device_mesh(given.device, (world,))
    sizes = {"hidden_size": given.hidden_size, "device": given.device, "dtype": torch.bfloat16}
    one = gt.GatedMLP(intermediate_size=given.intermediate_size, **sizes)
    part = gt.GatedMLP(intermediate_size=given.intermediate_size // world, **sizes)
    many = gt.parallelize(gt.GatedMLP(intermediate_size=given.intermediate_size, **sizes), mesh)
    for tokens in given.tokens:
        x = torch.randn(tokens, given.hidden_size, device=given.device, dtype=torch.bfloat16)
        with torch.no_grad():
            ways = {"one": lambda x=x: one(x), "part": lambda x=x: part(x), "many": lambda x=x: many(x)}
            times = measure(ways, given.rounds, given.device)
        row = {
            "op": "mlp", "tokens": tokens, "hidden_size": given.hidden_size,
            "intermediate_size": given.intermediate_size, "dtype": "bf16", "devices": world,
            "time_us": times["many"] * 1e6, "time_one_us": times["one"] * 1e6, "time_part_us": times["part"] * 1e6,
            "share_beside_the_products": 1 - times["part"] / times["many"],
            "efficiency": times["one"] / (world * times["many"]),
        }  # fmt: skip
        if rank == 0:
            print(json.dumps(row), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
