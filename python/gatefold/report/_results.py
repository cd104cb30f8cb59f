"""The result files of a folder: {"context": {...}, "rows": [...]}, in a sub-folder for each machine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# Where a file may lie, the first that has it counts.
MACHINES = ["h200", "h100", "cpu", "."]

NAMES = {
    "llama3.2-1b": "Llama 3.2 1B", "llama3.1-8b": "Llama 3.1 8B", "llama3.1-70b": "Llama 3.1 70B",
    "llama3.1-405b": "Llama 3.1 405B", "smollm2-135m": "SmolLM2 135M",
}  # fmt: skip


class Missing(Exception):
    """A figure's data are not there. The message names the file, or what it lacks."""


@dataclass(frozen=True)
class File:
    """One result file."""

    path: Path
    context: Row
    rows: list[Row]

    @property
    def device(self) -> str:
        """The machine's name as it was measured: "NVIDIA H200"."""
        return self.context.get("gpu") or self.context.get("cpu") or "?"

    def of(self, **wanted: Any) -> list[Row]:
        """The rows that have all these values."""
        return [row for row in self.rows if all(row.get(key) == value for key, value in wanted.items())]


class Results:
    """The files below one folder, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str, machines: Iterable[str] = tuple(MACHINES)) -> File:
        """The first machine's file of that name. Raises Missing."""
        for machine in machines:
            path = self.folder / machine / name
            if path.is_file():
                return self._read(path)
        places = ", ".join(str(self.folder / machine) for machine in machines)
        raise Missing(f"no {name} in {places}")

    def files(self, names: Iterable[str], machines: Iterable[str] = tuple(MACHINES)) -> list[File]:
        """All of them, in this order, of one machine: the first that has the first name. Raises Missing."""
        names = list(names)
        first = self.file(names[0], machines)
        return [first] + [self.file(name, [first.path.parent.relative_to(self.folder).as_posix()]) for name in names[1:]]

    @staticmethod
    def _read(path: Path) -> File:
        try:
            data = json.loads(path.read_text())
            return File(path, data["context"], data["rows"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: no result file: {error!r}") from error


def cells(rows: Iterable[Row]) -> dict[tuple[str, int], dict[str, Row]]:
    """(model, tokens) -> provider -> row"""
    found: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["tokens"]), {})[row["provider"]] = row
    return found


def models_of(rows: Iterable[Row]) -> list[str]:
    """In the order of their first rows."""
    return list(dict.fromkeys(row["model"] for row in rows))


def name_of(model: str) -> str:
    return NAMES.get(model, model)
