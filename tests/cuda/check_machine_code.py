#!/usr/bin/env python3
"""What the element-wise objects contain: check_machine_code.py CUOBJDUMP OBJECT...

Machine code for sm_80 and sm_90 and PTX for later chips in each; and in the vector kernels for silu 16-byte accesses
to global memory only, with one MUFU.EX2 and one MUFU.RCP per element, and on sm_90 none before the kernel before it has
ended (ACQBULK).
"""
import re
import subprocess
import sys

# Kernels name their element type and configuration in their mangled names.
VECTOR_KERNEL = re.compile(r"Function : (\S*act_and_mul_(?:row_)?kernelI(f|6__half|13__nv_bfloat16)\S*ActivationKindE1E\S*ByVectors\S*)")
UNITS = 1  # of 16 bytes of output per thread, ActAndMulConfig::units() of ByVectors
ELEMENTS = {"f": 4, "6__half": 8, "13__nv_bfloat16": 8}


def dump(tool, option, path):
    return subprocess.run([tool, option, path], check=True, capture_output=True, text=True).stdout


def check_targets(tool, path):
    elves = dump(tool, "--list-elf", path)
    ptx = dump(tool, "--list-ptx", path)
    wanted = {"sm_80 machine code": "sm_80" in elves, "sm_90 machine code": "sm_90" in elves, "PTX": "sm_90.ptx" in ptx}
    return [f"{path}: no {name}" for name, there in wanted.items() if not there]


def check_kernel(name, element, body):
    problems = []
    accesses = re.findall(r"\b((?:LDG|STG)\.[A-Z0-9_.]+)", body)
    narrow = [access for access in accesses if ".128" not in access]
    if narrow or len(accesses) != 3 * UNITS:
        problems.append(f"{name}: {3 * UNITS} accesses of 16 bytes expected, found {sorted(set(accesses))} x {len(accesses)}")
    if re.search(r"\b(LDL|STL)\b", body):
        problems.append(f"{name}: local memory is used")
    for operation in ("MUFU.EX2", "MUFU.RCP"):
        count = len(re.findall(re.escape(operation) + r"\b", body))
        if count != UNITS * ELEMENTS[element]:
            problems.append(f"{name}: {UNITS * ELEMENTS[element]} {operation} expected, found {count}")
    if "EF_CUDA_SM90" in body and not 0 <= body.find("ACQBULK") < body.find("LDG."):
        problems.append(f"{name}: no wait for the kernel before it, or only after a load")
    return problems


def check_kernels(tool, path):
    parts = re.split(r"(?=\t*Function : )", dump(tool, "--dump-sass", path))
    problems, checked = [], 0
    for part in parts:
        match = VECTOR_KERNEL.match(part.strip())
        if match:
            checked += 1
            problems += check_kernel(match.group(1), match.group(2), part)
    return problems, checked


def main(tool, *objects):
    problems, checked = [], 0
    for path in objects:
        problems += check_targets(tool, path)
        found, here = check_kernels(tool, path)
        problems += found
        checked += here
    if checked != 18:  # for rows, rows of runs of any length and one row, three element types, two architectures
        problems.append(f"{checked} vector kernels for silu found, expected 18")
    print("\n".join(problems) or f"{checked} vector kernels for silu, {len(objects)} objects: as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
