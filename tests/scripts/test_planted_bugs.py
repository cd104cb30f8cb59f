"""Every bug of tests/planted_bugs can be planted: what it replaces stands in its file, once."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "planted_bugs"))


@pytest.mark.parametrize("group", ["cpu", "cuda", "swap_ffn", "tools"])
def test_what_each_bug_replaces_stands_in_its_file_once(group):
    bugs = importlib.import_module(f"{group}_bugs").BUGS
    assert bugs
    counts = {f"{bug.where}: {bug.what}": (ROOT / bug.file).read_text().count(bug.before) for bug in bugs}
    assert {what: count for what, count in counts.items() if count != 1} == {}
    assert len(counts) == len(bugs), "two bugs have one name"
    assert all(bug.after != bug.before for bug in bugs)
