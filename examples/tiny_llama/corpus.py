"""Source code and documentation that any Debian machine has, split by file into what is trained on and what is not.

The split is a hash of a file's kind and name, so it is the same on every machine, whatever versions are installed: a file
that one machine held out was trained on nowhere.
"""

import hashlib
from pathlib import Path

import torch
from torch import Tensor

# kind: (package, folders, endings, parts of paths that are left out: tables of numbers, and tests)
KINDS = {
    "python": ("libpython3-stdlib", ["/usr/lib/python3.[0-9]*"], [".py"],
               {"test", "tests", "dist-packages", "encodings", "pydoc_data", "lib2to3", "__pycache__"}),
    "c++": ("libstdc++-dev", ["/usr/include/c++/*"], ["", ".h", ".hpp", ".tcc"], {"unicode"}),
    "perl": ("perl-modules", ["/usr/share/perl/5.*.*"], [".pm", ".pod"], {"unicore", "Unicode", "CoreList.pm"}),
}  # fmt: skip
HELD_OUT_OF = 10  # one file in so many is held out
LARGEST_FILE = 200_000  # bytes; longer ones are tables


def _files(kind: str) -> list[Path]:
    """Sorted by what the split looks at, which doesn't name the version."""
    _, patterns, endings, left_out = KINDS[kind]
    found = {}
    for pattern in patterns:
        for folder in sorted(Path("/").glob(pattern.lstrip("/"))):
            for path in folder.rglob("*"):
                name = path.relative_to(folder).as_posix()
                if path.suffix in endings and not left_out & set(path.relative_to(folder).parts) and path.is_file():
                    found.setdefault(name, path)
    return [found[name] for name in sorted(found) if 0 < found[name].stat().st_size <= LARGEST_FILE]


def _is_held_out(kind: str, path: Path) -> bool:
    name = f"{kind}/{path.name}"
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT_OF == 0


def read(held_out: bool) -> dict[str, Tensor]:
    """kind -> the bytes of its files one after another, uint8 [N]. A kind that this machine lacks is left out."""
    texts = {}
    for kind, (package, patterns, *_) in KINDS.items():
        files = [path for path in _files(kind) if _is_held_out(kind, path) == held_out]
        if files:
            data = bytearray(b"".join(path.read_bytes() for path in files))
            texts[kind] = torch.frombuffer(data, dtype=torch.uint8)  # [N]
        else:
            print(f"corpus: no {kind} below {', '.join(patterns)} (package {package}): goes on without")
    if not texts:
        raise SystemExit("corpus: none of the folders of KINDS is here; Debian's package libpython3-stdlib brings one")
    return texts


def windows(texts: dict[str, Tensor], count: int, length: int, generator: torch.Generator) -> Tensor:
    """Random pieces, the kinds in turn. int64 [count, length]"""
    kinds = list(texts.values())
    pieces = []
    for i in range(count):
        text = kinds[i % len(kinds)]
        start = int(torch.randint(len(text) - length + 1, (1,), generator=generator))
        pieces.append(text[start : start + length])
    return torch.stack(pieces).long()
