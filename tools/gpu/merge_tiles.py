#!/usr/bin/env python3
"""Puts runs of `gatefold bench gate_up --impl NAME:KERNEL`, one for each kernel, together into one file with the rows
that bench_sm90_tiles writes: merge_tiles.py OUTPUT FILE..."""
import json
import pathlib
import shlex
import sys


def kernel_of(command):
    """sm80:128x256 lines -> 128x256 lines"""
    words = shlex.split(command)
    return words[words.index("--impl") + 1].split(":", 1)[1]


def main(output, *files):
    runs = [json.loads(pathlib.Path(file).read_text()) for file in files]
    rows = [
        {key: row[key] for key in ("model", "hidden_size", "intermediate_size", "tokens")}
        | {"tile": kernel_of(run["context"]["command"]), "time_us": round(row["time_us"], 2)}
        for run in runs
        for row in run["rows"]
    ]
    context = runs[0]["context"] | {"command": [run["context"]["command"] for run in runs]}
    lines = ",\n".join(json.dumps(row) for row in rows)
    pathlib.Path(output).write_text(f'{{"context": {json.dumps(context)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
