"""Runs test_official.py, or says why it can't: exit code 77 where this Python lacks a package."""

import importlib.util
import pathlib
import sys

PACKAGES = ("pytest", "numpy", "ml_dtypes", "safetensors")

missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: {sys.executable} has no {', '.join(missing)}: scripts/setup makes .venv with requirements-dev.txt")
    sys.exit(77)

import pytest  # noqa: E402

test = pathlib.Path(__file__).with_name("test_official.py")
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", str(test), *sys.argv[1:]]))
