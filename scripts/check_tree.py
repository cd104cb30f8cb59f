#!/usr/bin/env python3
"""Checks tracked files for what must not be in them: paths of one machine, package hosts, and overlong sources.

Prints one line per offence and exits with 1 if there is any. Long sources are a warning first.
"""

import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.})-])/(work|root|tmp|home/\w+)/"),
    "a package host": re.compile(r"\b(pypi\.org|pythonhosted\.org|(deb|security)\.debian\.org|(archive|security)\.ubuntu\.com"
                                 r"|registry\.npmjs\.org|pypi\.nvidia\.com)\b"),
}
SOURCE_SUFFIXES = {".h", ".c", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}
WARN_LINES, MAX_LINES = 300, 600


def is_source(path: Path) -> bool:
    return path.suffix in SOURCE_SUFFIXES or path.name in ("CMakeLists.txt", "Makefile")


def forbidden(path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: {what}: {match.group(0)}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if (match := pattern.search(line))
    ]


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    paths = [path for path in listing.split("\0") if path and (root / path).is_file()]
    found = []
    for path in paths:
        data = (root / path).read_bytes()
        if b"\0" in data:
            continue  # not text
        text = data.decode("utf-8", errors="replace")
        found += forbidden(path, text)
        lines = text.count("\n")
        if is_source(Path(path)) and lines > WARN_LINES:
            message = f"{path}: {lines} lines, more than {MAX_LINES if lines > MAX_LINES else WARN_LINES}"
            if lines > MAX_LINES:
                found.append(message)
            else:
                print(f"warning: {message}")
    print("\n".join([*found, f"{len(paths)} files, {len(found)} offences"]))
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
