#!/usr/bin/env python3
"""What a call of gatefold.torch.gate_up costs above its work: an empty batch, so there is none. Microseconds.

Beside it torch's own calls of as little work: torch.mm by its generated binding, and by the way that every operator of
another library takes (torch.ops). Tensors are made on the device by name: under torch.set_default_device every call of
torch is handed to a Python function first, which costs an operator 2 to 6 us and is no part of this one.

python bench/torch_call_cost.py [--device cuda] [--json FILE]     # in an environment with torch and the package
"""

import argparse
import datetime
import json
import platform
import re
import timeit
from pathlib import Path

import torch

import gatefold.torch

CALLS, ROUNDS = 50_000, 9


def cost(call) -> float:
    """The fastest of some rounds: what disturbs a call only makes it slower."""
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def costs(device: str) -> dict[str, float]:
    x, gate, up = (torch.randn(rows, 16, device=device) for rows in (0, 16, 16))
    with_gradient = gate.clone().requires_grad_()
    rows = gate.t()
    mm = torch.ops.aten.mm.default

    def gate_up(weight):
        return lambda: gatefold.torch.gate_up(x, weight, up, layout="separate", activation="silu")

    found = {}
    with torch.inference_mode():
        found["torch.mm, inference_mode"] = cost(lambda: torch.mm(x, rows))
        found["torch.ops.aten.mm, inference_mode"] = cost(lambda: mm(x, rows))
        found["gate_up, inference_mode"] = cost(gate_up(gate))
    with torch.no_grad():
        found["gate_up, no_grad"] = cost(gate_up(gate))
    found["gate_up, no gradient needed"] = cost(gate_up(gate))
    found["gate_up, with gradients"] = cost(gate_up(with_gradient))
    return found


def context(device: str) -> dict[str, str]:
    cpu = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else "none",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "gatefold": gatefold.__version__,
        "command": f"bench/torch_call_cost.py --device {device}",
        "date": str(datetime.date.today()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = costs(options.device)
    for name, microseconds in found.items():
        print(f"{name:36}{microseconds:.2f}")
    if options.json:
        rows = [{"call": name, "time_us": round(microseconds, 3)} for name, microseconds in found.items()]
        options.json.write_text(json.dumps({"context": context(options.device), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
