#!/usr/bin/env python3
"""What the objects of the sm_90a products contain: check_wgmma_code.py CUOBJDUMP OBJECT...

Every kernel multiplies by warpgroup (HGMMA), not by warp (HMMA), is fed and emptied by the copy engine (UTMALDG,
UTMASTG), and has nothing in local memory. Those that read a gate tile read it from shared memory as matrices (LDSM).
Among them are the chains of MLPs, one of each element type.
"""
import re
import subprocess
import sys

KERNEL = re.compile(r"Function : (\S*sm90(?:6kernel|12chain_kernel)\S*)")
GATED_BY_MEMORY = "ProductE2E"  # as the name of a kernel holds Product::gated_by_memory
CHAIN = "12chain_kernel"
CHAINS = 2


def problems_of(name, body):
    has = {operation: re.search(rf"\b{operation}\b", body) is not None
           for operation in ("HGMMA", "HMMA", "LDSM", "LDL", "STL", "UTMALDG", "UTMASTG")}  # fmt: skip
    wanted = {"HGMMA": True, "HMMA": False, "LDSM": GATED_BY_MEMORY in name, "LDL": False, "STL": False,
              "UTMALDG": True, "UTMASTG": True}  # fmt: skip
    return [f"{name}: {'no' if wanted[operation] else 'unexpected'} {operation}"
            for operation, there in has.items() if there != wanted[operation]]


def main(tool, *objects):
    problems, kernels, gated, chains = [], 0, 0, 0
    for path in objects:
        sass = subprocess.run([tool, "--dump-sass", path], check=True, capture_output=True, text=True).stdout
        parts = [part for part in re.split(r"(?=Function : )", sass) if KERNEL.match(part)]
        for part in parts:
            name = KERNEL.match(part).group(1)
            kernels += 1
            gated += GATED_BY_MEMORY in name
            chains += CHAIN in name
            problems += problems_of(name, part)
    if gated == 0 or gated == kernels:
        problems.append(f"{gated} of {kernels} kernels read a gate tile: expected some, and not all")
    if chains != CHAINS:
        problems.append(f"{chains} chains, expected {CHAINS}")
    print("\n".join(problems) or f"{kernels} kernels, {gated} of which read a gate tile, {chains} chains: as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
