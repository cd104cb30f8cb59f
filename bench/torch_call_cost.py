#!/usr/bin/env python3
"""What a call of gatefold.torch.gate_up costs above its work: an empty batch, so there is none. Microseconds.

Beside it torch's own calls of as little work, on the same tensors: linear by its generated binding; addmm, which takes
as many tensors as gate_up, by the way that every operator of another library takes (torch.ops); an autograd.Function
that makes its output and nothing else; and the four operators that gate_up replaces. Each figure is the fastest of
rounds in which the calls alternate. Tensors are made on the device by name: under torch.set_default_device every call
of torch is handed to a Python function first, which costs an operator 2 to 6 us and is no part of this one.

python bench/torch_call_cost.py [--devices cpu cuda] [--json FILE]     # in an environment with torch and the package
"""

import argparse
import datetime
import gc
import json
import platform
import re
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Callable

import torch
from torch.nn.functional import linear, silu

import gatefold.torch

CALLS = 1000  # of a round


class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, up):
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, dy):
        return None, None, None


def seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    for _ in range(CALLS):
        call()
    return (perf_counter() - begin) / CALLS


def fastest(calls: dict[tuple[str, str], Callable[[], object]], modes: dict[str, object],
            rounds: int) -> dict[tuple[str, str], float]:
    """By mode and name. What disturbs a call only makes it slower, so the least of its times is its own."""
    found = dict.fromkeys(calls, float("inf"))
    gc.disable()
    for _ in range(rounds):
        for (mode, name), call in calls.items():
            with modes[mode]():
                found[mode, name] = min(found[mode, name], seconds(call))
    gc.enable()
    return found


def costs(device: str, rounds: int) -> dict[tuple[str, str], float]:
    x, gate, up = (torch.randn(rows, 16, device=device) for rows in (0, 16, 16))
    bias, rows = torch.randn(16, device=device), gate.t()
    weight = gate.clone().requires_grad_()
    addmm = torch.ops.aten.addmm.default
    how = {"layout": "separate", "activation": "silu"}
    modes = {"inference_mode": torch.inference_mode, "no_grad": torch.no_grad, "no gradient needed": nullcontext,
             "with gradients": nullcontext}  # fmt: skip
    calls = {
        ("inference_mode", "linear"): lambda: linear(x, gate),
        ("inference_mode", "torch.ops.aten.addmm"): lambda: addmm(bias, x, rows),
        ("inference_mode", "silu(linear) * linear"): lambda: silu(linear(x, gate)) * linear(x, up),
        ("inference_mode", "gate_up"): lambda: gatefold.torch.gate_up(x, gate, up, **how),
        ("no_grad", "gate_up"): lambda: gatefold.torch.gate_up(x, gate, up, **how),
        ("no gradient needed", "gate_up"): lambda: gatefold.torch.gate_up(x, gate, up, **how),
        ("with gradients", "linear"): lambda: linear(x, weight),
        ("with gradients", "a Function of nothing"): lambda: Nothing.apply(x, weight, up),
        ("with gradients", "silu(linear) * linear"): lambda: silu(linear(x, weight)) * linear(x, up),
        ("with gradients", "gate_up"): lambda: gatefold.torch.gate_up(x, weight, up, **how),
    }
    return fastest(calls, modes, rounds)


def context(devices: list[str]) -> dict[str, str]:
    cpu = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "gpu": torch.cuda.get_device_name() if "cuda" in devices else "none",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "gatefold": gatefold.__version__,
        "command": f"bench/torch_call_cost.py --devices {' '.join(devices)}",
        "date": str(datetime.date.today()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs="+", choices=["cpu", "cuda"], default=["cpu"])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for device in options.devices:
        for (mode, name), time in costs(device, options.rounds).items():
            rows.append({"device": device, "mode": mode, "call": name, "time_us": round(time * 1e6, 3)})
            print(f"{device:6}{mode:20}{name:24}{time * 1e6:6.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"context": context(options.devices), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
