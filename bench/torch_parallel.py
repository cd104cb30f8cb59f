#!/usr/bin/env python3
"""A gated MLP over several devices against one: time, the share beside the products, efficiency.

torchrun --nproc-per-node 8 bench/torch_parallel.py --output FILE             # Llama 70B's block, NCCL
torchrun --nproc-per-node 2 bench/torch_parallel.py --device cpu --hidden-size 512 --intermediate-size 1536

Two forms: `whole`, in which every device has the whole x and gets the whole y, and `sequence`, in which it has and gets
its part of the tokens. The ways of each:

    one          one device alone, the whole block
    part         one device's part of the products, without communication
    parallelize  gatefold.torch.parallelize: all-reduce; all-gather and reduce-scatter
    functional   part, and the all-reduce of torch's functional collectives, which DTensor makes use of
    one_shot, two_shot   part, and the all-reduces of PyTorch's symmetric memory
    async_tp     PyTorch's fused_all_gather_matmul and fused_matmul_reduce_scatter around act_and_mul
    async_gate_up        the pipelines that those two run on, with gate_up on each device's tokens as they arrive

Each figure is the median of rounds in which the ways alternate; of a round's times the slowest device's counts. A way
that a machine can't do (symmetric memory is CUDA's) is named with the reason. Every way's result is held to one's.
"""

import argparse
import copy
import datetime
import json
import os
import statistics
import time
import warnings
from pathlib import Path
from typing import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed._symmetric_memory as symmetric
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import gatefold.torch as gt

SILU = {"layout": "separate", "activation": "silu"}
# Relative L2 of bf16 results: gate, up, the activation, h, the parts and their sum are rounded, each by at most 2^-9, in
# either of two results.
MOST_DISTANCE = 12 * 2.0**-9


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--hidden-size", type=int, default=8192)
    parser.add_argument("--intermediate-size", type=int, default=28672)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16, 64, 512, 8192])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--round-ms", type=float, default=50)
    parser.add_argument("--output", type=Path, help="JSON, written after every number of tokens")
    return parser.parse_args()


class Devices:
    """The processes, of which each has one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.rank, self.count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        patience = datetime.timedelta(seconds=60)
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=patience)
        self.mesh: DeviceMesh = init_device_mesh(device, (self.count,))

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def largest(self, value: float) -> float:
        found = torch.tensor([value], device=self.device, dtype=torch.float32)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.item()


class Weights:
    """The block's weights, whole on every device, and divided."""

    def __init__(self, given: argparse.Namespace, devices: Devices) -> None:
        torch.manual_seed(0)  # the same on all devices
        self.one = gt.GatedMLP(given.hidden_size, given.intermediate_size, device=given.device, dtype=torch.bfloat16)
        self.whole = gt.parallelize(copy.deepcopy(self.one), devices.mesh)
        self.sequence = gt.parallelize(copy.deepcopy(self.one), devices.mesh, sequence_dim=0)
        layers = (self.whole.gate_proj, self.whole.up_proj, self.whole.down_proj)
        self.gate, self.up, self.down = (layer.weight.detach().to_local() for layer in layers)


def ways_of_whole(x: Tensor, w: Weights, devices: Devices) -> dict[str, Callable[[], Tensor]]:
    def part(out: Tensor | None = None) -> Tensor:
        return gt.mlp(x, w.gate, w.up, w.down, out=out, **SILU)

    name = devices.mesh.get_group().group_name
    buffer = None

    def symmetric_part() -> Tensor:
        nonlocal buffer
        if buffer is None:
            buffer = symmetric.empty(x.shape, dtype=x.dtype, device=x.device)
            symmetric.rendezvous(buffer, name)
        return part(buffer)

    return {
        "one": lambda: w.one(x),
        "part": part,
        "parallelize": lambda: w.whole(x),
        "functional": lambda: collectives.wait_tensor(collectives.all_reduce(part(), "sum", (devices.mesh, 0))),
        "one_shot": lambda: torch.ops.symm_mem.one_shot_all_reduce(symmetric_part(), "sum", name),
        "two_shot": lambda: torch.ops.symm_mem.two_shot_all_reduce_out(symmetric_part(), "sum", name, torch.empty_like(x)),
    }


def ways_of_sequence(x: Tensor, w: Weights, devices: Devices) -> dict[str, Callable[[], Tensor]]:
    name = devices.mesh.get_group().group_name
    mine = x.chunk(devices.count)[devices.rank].contiguous()

    def async_tp() -> Tensor:
        _, (gate, up) = torch.ops.symm_mem.fused_all_gather_matmul(mine, [w.gate.t(), w.up.t()], 0, name)
        h = gt.act_and_mul(gate, up, **SILU)
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(h, w.down.t(), "sum", 0, name)

    def async_gate_up() -> Tensor:
        h = x.new_empty(x.shape[0], w.gate.shape[0])
        h_of, gathered, parts = h.chunk(devices.count), torch.empty_like(x), torch.empty_like(x)
        symmetric._pipelined_all_gather_and_consume(
            mine, lambda tokens, rank: gt.gate_up(tokens, w.gate, w.up, out=h_of[rank], **SILU), gathered, name, False)
        symmetric._pipelined_produce_and_all2all(
            lambda rank, out: torch.mm(h_of[rank], w.down.t(), out=out), parts, name)  # fmt: skip
        return parts.view(devices.count, *mine.shape).sum(0)

    return {"parallelize": lambda: w.sequence(mine), "async_tp": async_tp, "async_gate_up": async_gate_up}


def refusal(call: Callable[[], Tensor], expected: Tensor, devices: Devices) -> tuple[str | None, float]:
    """Why a way can't be measured, on whichever device, and the distance of its result, of all devices the largest."""
    reason, distance = None, 0.0
    try:
        found = call().float()
        devices.synchronize()
        distance = ((found - expected).norm() / expected.norm()).item()
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0].split(". ")[0]
    reasons: list[str | None] = [None] * devices.count
    dist.all_gather_object(reasons, reason)
    distance = devices.largest(distance)
    if (first := next(filter(None, reasons), None)) is not None:
        return first, distance
    return None if distance <= MOST_DISTANCE else f"wrong by {distance:.3g}, more than {MOST_DISTANCE:.3g}", distance


def seconds(call: Callable[[], Tensor], count: int, devices: Devices) -> float:
    """Per call, on the slowest device."""
    dist.barrier()
    devices.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    devices.synchronize()
    return devices.largest((time.perf_counter() - start) / count)


def medians(ways: dict, given: argparse.Namespace, devices: Devices) -> dict:
    counts = {key: max(1, int(given.round_ms / 1e3 / seconds(call, 3, devices))) for key, call in ways.items()}
    times = {key: [] for key in ways}
    for _ in range(given.rounds):
        for key, call in ways.items():
            times[key].append(seconds(call, counts[key], devices))
    return {key: statistics.median(found) for key, found in times.items()}


def rows_of(tokens: int, w: Weights, given: argparse.Namespace, devices: Devices) -> list[dict]:
    torch.manual_seed(tokens)
    x = torch.randn(tokens, given.hidden_size, device=given.device, dtype=torch.bfloat16)
    ways = {("whole", way): call for way, call in ways_of_whole(x, w, devices).items()}
    if tokens % devices.count == 0:
        ways |= {("sequence", way): call for way, call in ways_of_sequence(x, w, devices).items()}
    y = w.one(x).float()
    expected = {"whole": y, "sequence": y.chunk(devices.count)[devices.rank] if tokens % devices.count == 0 else None}
    said = {}
    for (form, way), call in ways.items():
        # A part is no result.
        said[form, way] = (None, None) if way == "part" else refusal(call, expected[form], devices)
    times = medians({key: call for key, call in ways.items() if said[key][0] is None}, given, devices)
    one, part = times["whole", "one"], times["whole", "part"]
    rows = []
    for (form, way), (reason, distance) in said.items():
        row = {"op": "mlp", "tokens": tokens, "hidden_size": given.hidden_size, "dtype": "bf16",
               "intermediate_size": given.intermediate_size, "devices": devices.count, "form": form, "way": way}  # fmt: skip
        if reason is not None:
            rows.append({**row, "refused": reason})
            continue
        row["time_us"] = round(times[form, way] * 1e6, 3)
        if way not in ("one", "part"):
            row["share_beside_the_products"] = round(1 - part / times[form, way], 4)
            row["efficiency"] = round(one / (devices.count * times[form, way]), 4)
            row["relative_l2_to_one"] = round(distance, 6)
        rows.append(row)
    return rows


def table(rows: list[dict]) -> str:
    lines = [f"{'tokens':>6}  {'form':9}{'way':14}{'us':>10}{'efficiency':>12}{'distance':>10}"]
    for row in rows:
        line = f"{row['tokens']:6}  {row['form']:9}{row['way']:14}"
        if "refused" in row:
            line += f"  {row['refused']}"
        else:
            line += f"{row['time_us']:10.1f}"
        if "efficiency" in row:
            line += f"{row['efficiency']:12.3f}{row['relative_l2_to_one']:10.5f}"
        lines.append(line)
    return "\n".join(lines)


def context(given: argparse.Namespace, devices: Devices) -> dict[str, str]:
    name = torch.cuda.get_device_name() if given.device == "cuda" else "CPU process"
    return {
        "devices": f"{devices.count} x {name}", "torch": torch.__version__,
        "command": f"torchrun --nproc-per-node {devices.count} bench/torch_parallel.py",
        "date": str(datetime.date.today()),
    }  # fmt: skip


def main() -> None:
    given = options()
    devices = Devices(given.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.11 needs it, 2.15 says that it does not
        symmetric.enable_symm_mem_for_group(devices.mesh.get_group().group_name)
    weights, rows = Weights(given, devices), []
    with torch.no_grad():
        for tokens in given.tokens:
            rows += rows_of(tokens, weights, given, devices)
            if devices.rank == 0 and given.output:
                given.output.write_text(json.dumps({"context": context(given, devices), "rows": rows}, indent=1) + "\n")
    if devices.rank == 0:
        print(table(rows), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    # All is written. An interpreter that takes itself down beside gloo's threads is aborted now and then: "terminate
    # called without an active exception".
    os._exit(0)


if __name__ == "__main__":
    main()
