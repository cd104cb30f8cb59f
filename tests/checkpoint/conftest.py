"""Options and fixtures of the tests that run the tool."""

import json
import os
import subprocess

import numpy as np
import pytest


def pytest_addoption(parser):
    parser.addoption("--gatefold", required=True, help="the gatefold program")


@pytest.fixture
def gatefold(request):
    """Runs the tool; returns its exit code, stdout and stderr."""

    def run(*arguments):
        command = [request.config.getoption("--gatefold"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    return run


@pytest.fixture
def run_layer(gatefold):
    """Runs one layer on the CPU, quickly; returns the rows of its table by way."""

    def run(checkpoint, *arguments):
        quick = ["--device", "cpu", "--format", "json", "--rounds", 1, "--min-time", 1]
        result = gatefold("run", checkpoint, *quick, *arguments)
        assert result.returncode == 0, result.stderr
        return {row["way"]: row for row in json.loads(result.stdout)["rows"]}

    return run


@pytest.fixture
def rng():
    """Fresh numbers for every run; GATEFOLD_TEST_SEED repeats one."""
    seed = int(os.environ.get("GATEFOLD_TEST_SEED") or int.from_bytes(os.urandom(4), "little"))
    print(f"GATEFOLD_TEST_SEED={seed} repeats this run")
    return np.random.default_rng(seed)
