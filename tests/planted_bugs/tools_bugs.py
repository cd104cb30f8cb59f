"""Faults in the checks that the command-line tool makes of its own results."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CUDA=OFF", "-DGATEFOLD_TOOLS=ON"]
PROGRAMS = []
TARGETS = ["gatefold_tool", "gatefold_spoiler"]

FAILED_CHECK = "cli.failed_check"

BUGS = [
    Bug("run", "leaves the last row out of its sample", "tools/cli/stage.cpp",
        "const std::int64_t first = (rows - 1) % stride;", "const std::int64_t first = 0;", FAILED_CHECK),
    Bug("run", "checks the first row alone", "tools/cli/stage.cpp",
        "return {first, stride, (rows - first + stride - 1) / stride};", "return {first, stride, 1};", FAILED_CHECK),
]
