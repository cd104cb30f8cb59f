#!/usr/bin/env python3
"""Checks that includes point only downward through the layers (CONTRIBUTING.md has the picture).

Prints one line per offence and exits with 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

# The layers from top to bottom. Folders on one line are neighbours: neither may include the other.
LAYERS = [
    ["src/api"],
    ["src/swap_ffn"],
    ["src/dispatch"],
    ["src/cuda/sm90", "src/cuda/sm90_decode", "src/cuda/sm80", "src/cuda/decode", "src/cuda/simt",
     "src/cuda/elementwise", "src/cuda/swap_ffn"],
    ["src/cuda/family"],
    ["src/cuda/copy_engine"],
    ["src/cuda"],  # common/, and the list of implementations
    ["src/cpu"],
    ["src/core"],
    ["src/numbers"],
]
# Arithmetic that knows nothing of Gatefold: whoever uses the library may include it too.
FOR_EVERYBODY = "src/numbers"
# Below it, but none of its business: it goes through what lies between.
NOT_DIRECTLY = {"src/api": ["src/cuda", "src/cpu"]}
# These know a user or a framework, and Gatefold only by its public headers.
USERS = ["tools", "bench", "python"]
# Except that the benchmarks of single kernels take configurations which no public header reaches.
KERNEL_BENCHMARKS = "bench/cuda"
KERNELS = ["src/cuda", "src/core"]

# Libraries outside the standard, and the only folders that may know them.
LIBRARIES = {
    r"(cute|cutlass)/|cuda|cublas|curand|nvtx|mma\.h": ["src/cuda", "tools", "bench", "tests"],
    r"(CLI|fmt|nlohmann)/": ["tools", "bench", "tests"],
    r"(gtest|gmock)/": ["tests"],
    r"torch/": ["python"],
}

# Folders that quoted paths start from.
ROOTS = ["src", "include", "tools", "bench", "tests"]
# Outside the library a path may also start from the file's own folder.
SIBLINGS = ["tools", "bench", "tests", "python"]
GENERATED = ["commit.hpp"]
SUFFIXES = {".h", ".c", ".hpp", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def folder_and_rank(path: str) -> tuple[str, int] | None:
    """The most specific layer folder that holds the path, and how high it stands."""
    found = [
        (folder, len(LAYERS) - level)
        for level, folders in enumerate(LAYERS)
        for folder in folders
        if is_under(path, folder)
    ]
    return max(found, key=lambda entry: len(entry[0]), default=None)


def resolve(root: Path, path: str, name: str) -> str | None:
    starts = list(ROOTS)
    if any(is_under(path, folder) for folder in SIBLINGS):
        starts.append(str(Path(path).parent))
    return next((f"{start}/{name}" for start in starts if (root / start / name).is_file()), None)


def library_offence(path: str, name: str) -> str | None:
    for pattern, folders in LIBRARIES.items():
        if re.match(pattern, name) and not any(is_under(path, folder) for folder in folders):
            return f"<{name}> is for {', '.join(folders)} only"
    if is_under(path, "include") and "/" in name:
        return f"<{name}>: a public header includes nothing but the standard library"
    return None


def project_offence(path: str, target: str) -> str | None:
    if is_under(path, "tests") or is_under(target, "include"):
        return None
    if is_under(path, "include"):
        return f"a public header includes {target}"
    if is_under(target, FOR_EVERYBODY):
        return None
    if is_under(path, KERNEL_BENCHMARKS) and any(is_under(target, folder) for folder in KERNELS):
        return None
    if any(is_under(path, user) for user in USERS):
        return f"{target} is no public header" if is_under(target, "src") else None
    source, destination = folder_and_rank(path), folder_and_rank(target)
    if source is None or destination is None:
        return f"{target if source else path} belongs to no layer"
    if destination[1] > source[1]:
        return f"{target} is above {source[0]}"
    if destination[0].startswith(tuple(NOT_DIRECTLY.get(source[0], []))):
        return f"{target} is not for {source[0]}, but for what lies between"
    if destination[1] == source[1] and destination[0] != source[0]:
        return f"{target} is beside {source[0]}"
    return None


def offences(root: Path, path: str) -> list[str]:
    found = []
    for match in INCLUDE.finditer((root / path).read_text(encoding="utf-8")):
        quoted, angled = match.groups()
        target = resolve(root, path, quoted or angled)
        if target:
            offence = project_offence(path, target)
        elif quoted in GENERATED:
            offence = None
        elif quoted:
            offence = f'"{quoted}" is not a path below any of: {", ".join(ROOTS)}'
        else:
            offence = library_offence(path, angled)
        if offence:
            found.append(f"{path}: {offence}")
    return found


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    listing = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout
    sources = [
        path
        for path in listing.splitlines()
        if Path(path).suffix in SUFFIXES and path.split("/")[0] in [*ROOTS, *USERS] and (root / path).is_file()
    ]
    found = [line for path in sources for line in offences(root, path)]
    print("\n".join([*found, f"{len(sources)} files, {len(found)} includes that break the layers"]))
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
