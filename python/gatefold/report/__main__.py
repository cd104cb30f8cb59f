"""`python -m gatefold.report RESULTS -o FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gatefold.report", description="Draws figures of measured results.")
    parser.add_argument("results", type=Path, help="the folder of result files, e.g. results")
    parser.add_argument("-o", "--output", type=Path, required=True, help="receives NAME-light.svg and NAME-dark.svg")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these figures alone")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    given = parser.parse_args()
    try:
        from . import FIGURES, Results, draw
    except ModuleNotFoundError as error:
        parser.exit(2, f"gatefold.report: needs the package {error.name}: pip install gatefold[report]\n")
    if unknown := sorted(set(given.only or ()) - set(FIGURES)):
        parser.error(f"--only: {', '.join(unknown)}: none of {', '.join(FIGURES)}")
    if not given.results.is_dir():
        parser.error(f"{given.results}: no folder")
    try:
        drawn = draw(Results(given.results), given.output, only=given.only, file_format=given.format)
    except ValueError as error:
        parser.exit(2, f"gatefold.report: {error}\n")
    return 0 if drawn else 1


if __name__ == "__main__":
    sys.exit(main())
