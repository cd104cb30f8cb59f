#!/usr/bin/env python3
"""Checks tracked files for what must not be in them: paths of one machine, package hosts, overlong sources, documents'
links to what is not there, programs and archives.

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
MADE = {  # and how it begins
    "a program or a library": b"\x7fELF",
    "a library": b"!<arch>\n",
    "a zip archive or a wheel": b"PK\x03\x04",
    "a gzip archive": b"\x1f\x8b",
    "an xz archive": b"\xfd7zXZ",
    "a zstd archive": b"\x28\xb5\x2f\xfd",
}
SOURCE_SUFFIXES = {".h", ".c", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}
WARN_LINES, MAX_LINES = 300, 600
LINK = re.compile(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ELSEWHERE = ("http:", "https:", "mailto:")


def is_source(path: Path) -> bool:
    return path.suffix in SOURCE_SUFFIXES or path.name in ("CMakeLists.txt", "Makefile")


def forbidden(path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: {what}: {match.group(0)}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if (match := pattern.search(line))
    ]


def anchors(text: str) -> set[str]:
    """As GitHub names headings: the words with hyphens between them, and a number after those of earlier headings."""
    names: set[str] = set()
    for heading in HEADING.findall(text):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        again = 1
        while (numbered := name if again == 1 else f"{name}-{again - 1}") in names:
            again += 1
        names.add(numbered)
    return names


def broken_links(root: Path, path: str, text: str) -> list[str]:
    broken = []
    for link in ("".join(groups) for groups in LINK.findall(text)):
        file, _, anchor = link.partition("#")
        to = root / Path(path).parent / file if file else root / path
        if link.startswith(ELSEWHERE):
            continue
        if not to.exists():
            broken.append(f"{path}: links to {link}, which is not there")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to.read_text()):
            broken.append(f"{path}: links to {link}, but {to.name} has no such heading")
    return broken


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    paths = [path for path in listing.split("\0") if path and (root / path).is_file()]
    found = []
    for path in paths:
        data = (root / path).read_bytes()
        if b"\0" in data:
            found += [f"{path}: is {what}, which is made, not tracked" for what, mark in MADE.items() if data.startswith(mark)]
            continue
        text = data.decode("utf-8", errors="replace")
        found += forbidden(path, text)
        if path.endswith(".md"):
            found += broken_links(root, path, text)
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
