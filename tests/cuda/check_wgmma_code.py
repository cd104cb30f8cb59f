#!/usr/bin/env python3
"""What the objects of the sm_90a products contain: check_wgmma_code.py CUOBJDUMP OBJECT...

Every kernel multiplies by warpgroup (HGMMA), not by warp (HMMA), is fed by the copy engine (UTMALDG) and emptied by it
(UTMASTG), unless its sums are in parts, and has nothing in local memory. Those that read a gate tile read it
from shared memory as matrices (LDSM). Among them are the chains of MLPs, one of each element type.

No copy takes a coordinate that was set under a stale predicate. ptxas 13.0 has made of "if (c) prefetch(map, k, row)"

    @P0 R2UR UR5, R12                    row, under what P0 was before
    PLOP3.LUT P0, PT, PT, PT, UP0, ..    P0 = c
    @UP0 UTMAPF.L2.3D [UR4], [UR8]

so that every block prefetched the same rows: no result was wrong, and a product took 1.6 times as long.

No copy stands in a loop over the lanes, which ptxas makes (BRA.U.ANY) where it cannot tell that what is requested is the
same in all of them: each would cost its thread some 120 cycles. By elected lanes (elect_one) it can. The last two rules
and the next are for all kernels that the copy engine feeds, sm90_decode's and sm80's boxes among them.

Nobody waits for memory before the blocks of a cluster have met: an arrival with .release would put a GPU-wide memory
barrier (MEMBAR.ALL.GPU) before the first UCGABAR_WAIT (cluster_arrive).

Between two wgmmas of a k-step no word of a descriptor comes out of a lane's register (R2UR): they follow from the first
one's in uniform registers (mainloop.cuh).
"""
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

FUNCTION = re.compile(r"Function : (\S+)")
PRODUCT = re.compile(r"sm90(?:6kernel|12chain_kernel)")
# As the name of a kernel holds Product::gated_by_memory, and ::parts and ::gated_parts.
GATED_BY_MEMORY = "ProductE2E"
IN_PARTS = re.compile("ProductE[34]E")
CHAIN = "12chain_kernel"
CHAINS = 2

BRANCH = re.compile(r"\b(?:BRA|BSYNC|CALL|EXIT)\b")
COPY = re.compile(r"\b(?:UTMAPF|UTMALDG|UTMASTG)\b")
COORDINATE = re.compile(r"@!?(P\d) R2UR (UR\d+), R\d+ ;")
BEFORE_A_COPY = 30  # instructions
LOOP_BEHIND = 3  # instructions from a copy to the branch of its loop
BEFORE_ITS_PREDICATE = 8


def instructions_of(body):
    lines = (re.sub(r"/\*.*?\*/", "", line).strip() for line in body.splitlines())
    return [line for line in lines if ";" in line]


def copies_in_loops_over_lanes(body):
    instructions = instructions_of(body)
    looped = []
    for at, copy in enumerate(instructions):
        behind = takewhile(lambda line: not COPY.search(line), instructions[at + 1 : at + 1 + LOOP_BEHIND])
        if COPY.search(copy) and any("BRA.U.ANY" in line for line in behind):
            looped.append(f"{copy} in a loop over lanes")
    return looped


def stale_predicates(body):
    """Copies whose coordinates are set under a predicate that is only then defined, by what guards the copy."""
    instructions = instructions_of(body)
    stale = []
    for at, copy in enumerate(instructions):
        if not COPY.search(copy):
            continue
        before = instructions[max(0, at - BEFORE_A_COPY) : at]
        for i, instruction in enumerate(before):
            match = COORDINATE.match(instruction)
            if not match:
                continue
            defined = [bool(re.match(rf"PLOP3\.LUT {match[1]}, PT, PT, PT, UP\d", line)) for line in before]
            if any(defined[i + 1 : i + BEFORE_ITS_PREDICATE]) and not any(defined[:i]):
                stale.append(f"{instruction} before {copy}")
    return stale


def descriptors_out_of_lanes(body):
    found, moved, in_step = [], 0, False
    for instruction in instructions_of(body):
        if re.search(r"\bHGMMA\b", instruction):
            if in_step and moved > 0:
                found.append(f"{moved} R2UR before {instruction}")
            in_step, moved = True, 0
        elif BRANCH.search(instruction):
            in_step = False
        elif "R2UR" in instruction:
            moved += 1
    return found


def memory_barriers_before_meeting(body):
    instructions = instructions_of(body)
    if not any("UCGABAR_WAIT" in instruction for instruction in instructions):
        return []
    before = takewhile(lambda instruction: "UCGABAR_WAIT" not in instruction, instructions)
    return [f"{instruction} before the blocks have met" for instruction in before
            if "MEMBAR" in instruction and ".CTA" not in instruction]  # fmt: skip


def problems_of_copies(name, body):
    found = stale_predicates(body) + copies_in_loops_over_lanes(body) + memory_barriers_before_meeting(body)
    return [f"{name}: {problem}" for problem in found]


def problems_of(name, body):
    has = {operation: re.search(rf"\b{operation}\b", body) is not None
           for operation in ("HGMMA", "HMMA", "LDSM", "LDL", "STL", "UTMALDG", "UTMASTG")}  # fmt: skip
    wanted = {"HGMMA": True, "HMMA": False, "LDSM": GATED_BY_MEMORY in name, "LDL": False, "STL": False,
              "UTMALDG": True, "UTMASTG": IN_PARTS.search(name) is None}  # fmt: skip
    return [f"{name}: {'no' if wanted[operation] else 'unexpected'} {operation}"
            for operation, there in has.items() if there != wanted[operation]] + problems_of_copies(name, body) + [
                f"{name}: {found}" for found in descriptors_out_of_lanes(body)]  # fmt: skip


def kernels_of(tool, path):
    sass = subprocess.run([tool, "--dump-sass", path], check=True, capture_output=True, text=True).stdout
    parts = re.split(r"(?=Function : )", sass)
    return [(match[1], part) for part in parts if (match := FUNCTION.match(part))]


def main(tool, *objects):
    problems, kernels, gated, chains, others = [], 0, 0, 0, 0
    with ThreadPoolExecutor() as pool:
        for of_object in pool.map(lambda path: kernels_of(tool, path), objects):
            for name, body in of_object:
                if not PRODUCT.search(name):
                    others += COPY.search(body) is not None
                    problems += problems_of_copies(name, body)
                    continue
                kernels += 1
                gated += GATED_BY_MEMORY in name
                chains += CHAIN in name
                problems += problems_of(name, body)
    if gated == 0 or gated == kernels:
        problems.append(f"{gated} of {kernels} kernels read a gate tile: expected some, and not all")
    if chains != CHAINS:
        problems.append(f"{chains} chains, expected {CHAINS}")
    if others == 0:
        problems.append("no other kernel that the copy engine feeds, so that their copies were not looked at")
    print("\n".join(problems) or f"{kernels} kernels, {gated} of which read a gate tile, {chains} chains, {others} others "
          "that the copy engine feeds: as expected")  # fmt: skip
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
