#!/usr/bin/env python3
"""What a call of gatefold.torch.gate_up costs above its work: an empty batch, so there is none. Microseconds.

python bench/torch_call_cost.py [--device cuda]     # in an environment with torch and the package
"""

import argparse
import timeit

import torch

import gatefold.torch

CALLS, ROUNDS = 100_000, 7


def cost(call) -> float:
    """The fastest of some rounds: what disturbs a call only makes it slower."""
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    torch.set_default_device(parser.parse_args().device)
    x, gate, up = torch.randn(0, 16), torch.randn(16, 16), torch.randn(16, 16)
    with_gradient = gate.clone().requires_grad_()
    rows = gate.t()

    def gate_up(weight):
        return lambda: gatefold.torch.gate_up(x, weight, up, layout="separate", activation="silu")

    with torch.inference_mode():
        print(f"torch.mm, for comparison    {cost(lambda: torch.mm(x, rows)):.2f}")
        print(f"gate_up, inference_mode     {cost(gate_up(gate)):.2f}")
    with torch.no_grad():
        print(f"gate_up, no_grad            {cost(gate_up(gate)):.2f}")
    print(f"gate_up, no gradient needed {cost(gate_up(gate)):.2f}")
    print(f"gate_up, with gradients     {cost(gate_up(with_gradient)):.2f}")


if __name__ == "__main__":
    main()
