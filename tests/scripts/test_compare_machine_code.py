"""scripts/compare_machine_code on texts as cuobjdump writes them: what it takes for the same, and what for another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "compare_machine_code"

LOAD = ("LDC R1, c[0x0][0x28]", 0x0800)
PARAMETER = ("ULDC UR5, c[0x0][0x318]", 0x0800)
ADDRESS = ("UIADD3 UR4, UP0, UR4, 0xf0, URZ", 0x1000)
EXIT = ("EXIT", 0x1000)
CODE = [LOAD, PARAMETER, ADDRESS, EXIT]
CONTROL = 1 << 41  # of the encoding's upper word: what the instruction waits for


def function(name, code):
    lines = [f"\t\tFunction : {name}", '\t.headerflags\t@"EF_CUDA_SM90"']
    for at, (text, upper) in enumerate([*code, ("BRA 0x40", 0), ("NOP", 0)]):
        lines += [f"        /*{16 * at:04x}*/    {text} ;    /* 0x{at + 1:016x} */", f"    /* 0x{upper:016x} */"]
    return "\n".join([*lines, "\t\t.........."]) + "\n"


def dump(*functions, arch="sm_90a"):
    return f"Fatbin elf code:\n\tcode for {arch}\n\t.target\t{arch}\n\n" + "\n".join(functions)


def compare(tmp_path, before, after, *options):
    for name, text in (("before.sass", before), ("after.sass", after)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, SCRIPT, tmp_path / "before.sass", tmp_path / "after.sass", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def replaced(instruction, by):
    return [by if line == instruction else line for line in CODE]


def test_the_same_is_identical(tmp_path):
    text = dump(function("one", CODE), function("two", CODE))
    assert compare(tmp_path, text, text) == (0, "2 kernels before, 2 after: 2 identical\n")


def test_a_parameter_that_moved_is_no_difference(tmp_path):
    after = function("one", replaced(PARAMETER, ("ULDC UR5, c[0x0][0x320]", PARAMETER[1])))
    status, output = compare(tmp_path, dump(function("one", CODE)), dump(after))
    assert (status, "1 identical" in output) == (0, True)


def test_the_constant_of_an_address_is_listed(tmp_path):
    after = function("one", replaced(ADDRESS, (ADDRESS[0].replace("0xf0", "0x130"), ADDRESS[1])))
    status, output = compare(tmp_path, dump(function("one", CODE)), dump(after))
    assert status == 0
    assert "| one | sm_90a | other numbers | UIADD3 0xf0 -> 0x130 |" in output


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("a register", replaced(PARAMETER, ("ULDC UR6, c[0x0][0x318]", PARAMETER[1]))),
        ("an operation", replaced(PARAMETER, ("ULDC.64 UR5, c[0x0][0x318]", PARAMETER[1]))),
        ("what the driver fills in", replaced(LOAD, ("LDC R1, c[0x0][0x20]", LOAD[1]))),
        ("another bank", replaced(PARAMETER, ("ULDC UR5, c[0x3][0x318]", PARAMETER[1]))),
        ("scheduling", replaced(ADDRESS, (ADDRESS[0], ADDRESS[1] + CONTROL))),
        ("one less", CODE[:-1]),
        ("one more", [*CODE, ("WARPSYNC.ALL", 0)]),
        ("order", [PARAMETER, LOAD, *CODE[2:]]),
    ],
)
def test_any_other_difference_is_one(tmp_path, what, code):
    status, output = compare(tmp_path, dump(function("one", CODE)), dump(function("one", code)))
    assert status == 1, what
    assert "| one | sm_90a | differs |" in output


def test_renamed_kernels_are_matched_by_code_then_by_name(tmp_path):
    other = replaced(ADDRESS, ("UIADD3 UR4, UR5, UR6, URZ", ADDRESS[1]))
    slower = replaced(ADDRESS, ("UIADD3 UR4, UR5, UR6, UR7", ADDRESS[1]))
    before = dump(function("kernel<tile,1>", CODE), function("kernel<row,1>", other))
    after = dump(function("kernel<shape<row>,1>", slower), function("kernel<shape<tile>,1>", CODE))
    status, output = compare(tmp_path, before, after, "--all")
    assert status == 1
    assert "| kernel<tile,1>, now kernel<shape<tile>,1> | sm_90a | identical |" in output
    assert "| kernel<row,1>, now kernel<shape<row>,1> | sm_90a | differs |" in output


def test_an_architecture_is_not_matched_with_another(tmp_path):
    before = dump(function("one", CODE)) + dump(function("one", CODE), arch="sm_80")
    status, output = compare(tmp_path, before, dump(function("one", CODE)))
    assert status == 1
    assert "| one | sm_80 | only in BEFORE |" in output
    assert compare(tmp_path, before, dump(function("one", CODE)), "--arch", "sm_90a")[0] == 0


def test_a_kernel_that_came_is_named(tmp_path):
    status, output = compare(tmp_path, dump(function("one", CODE)), dump(function("one", CODE), function("two", CODE)))
    assert status == 1
    assert "| two | sm_90a | only in AFTER |" in output


def test_a_missing_cuobjdump_is_named(tmp_path):
    (tmp_path / "kernel.cu.o").write_text("")
    environment = {key: value for key, value in os.environ.items() if key != "GATEFOLD_CUDA_TOOLS"}
    command = [sys.executable, SCRIPT, tmp_path, tmp_path, "--tools", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert f"no cuobjdump in {tmp_path}" in done.stderr
    assert "--tools or GATEFOLD_CUDA_TOOLS" in done.stderr


def test_a_folder_without_objects_is_named(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "holds no object of CUDA code" in done.stderr
