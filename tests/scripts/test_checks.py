"""The checks of scripts/ find what they are for: each is given a small repository with one fault planted."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    files = {
        "include/gatefold/gatefold.h": "#include <stdint.h>\n",
        "src/core/types.hpp": '#include "gatefold/gatefold.h"\n',
        "src/cuda/common/ptx.cuh": '#include "core/types.hpp"\n',
        "src/cuda/sm80/config.hpp": "#include <cute/tensor.hpp>\n",
        "src/cuda/sm90/config.hpp": '#include "cuda/common/ptx.cuh"\n',
        "src/dispatch/registry.cpp": '#include "cuda/sm90/config.hpp"\n',
        "src/cpu/check.hpp": '#include "core/types.hpp"\n',
        "src/numbers/exp.hpp": "#include <cmath>\n",
        "tools/cli/options.hpp": '#include <CLI/CLI.hpp>\n#include "numbers/exp.hpp"\n',
    }
    for path, text in files.items():
        write(tmp_path, path, text)
    return tmp_path


def write(repository, path, text):
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    subprocess.run(["git", "-C", repository, "add", path], check=True)


def run(script, repository):
    done = subprocess.run([sys.executable, SCRIPTS / script, repository], capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("script", ["check_includes.py", "check_tree.py"])
def test_a_clean_repository_passes(script, repository):
    status, output = run(script, repository)
    assert status == 0, output


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/core/up.hpp", '"dispatch/registry.hpp"'),
        ("src/core/up.hpp", '"cuda/common/ptx.cuh"'),
        ("src/core/library.hpp", "<nlohmann/json.hpp>"),
        ("src/api/past_dispatch.cpp", '"cpu/check.hpp"'),
        ("src/api/past_dispatch.cpp", '"cuda/sm90/config.hpp"'),
        ("src/cuda/common/up.cuh", '"cuda/sm90/config.hpp"'),
        ("src/cuda/sm90/beside.cuh", '"cuda/sm80/config.hpp"'),
        ("src/cuda/sm80/beside.cuh", "<cuda/sm90/config.hpp>"),
        ("src/cuda/sm80/relative.cuh", '"../sm90/config.hpp"'),
        ("src/cpu/library.cpp", "<cuda_runtime.h>"),
        ("src/other/nowhere.hpp", '"core/types.hpp"'),
        ("tools/cli/inside.cpp", '"core/types.hpp"'),
        ("bench/inside.cpp", '"cuda/sm90/config.hpp"'),
        ("bench/cuda/inside.cpp", '"dispatch/registry.hpp"'),
        ("src/core/sibling.hpp", '"types.hpp"'),
        ("src/numbers/up.hpp", '"core/types.hpp"'),
        ("include/gatefold/more.h", '"numbers/exp.hpp"'),
        ("include/gatefold/more.h", "<fmt/core.h>"),
        ("include/gatefold/more.h", '"core/types.hpp"'),
    ],
)
def test_an_include_that_breaks_the_layers_fails(repository, path, include):
    write(repository, "src/dispatch/registry.hpp", "")
    write(repository, path, f"#include {include}\n")
    status, output = run("check_includes.py", repository)
    assert status == 1
    assert f"{path}: " in output


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/path.md", "see /" + "root/results.json\n"),
        ("results/a.json", '{"command": "/' + 'tmp/build/gatefold"}\n'),
        ("scripts/install", "curl https://py" + "pi.org/simple\n"),
        ("src/core/long.cpp", "\n" * 601),
    ],
)
def test_what_must_not_be_tracked_fails(repository, path, text):
    write(repository, path, text)
    status, output = run("check_tree.py", repository)
    assert status == 1
    assert path in output


@pytest.mark.parametrize("begin", ["PK\x03\x04", "\x7fELF", "!<arch>\n"])
def test_programs_and_archives_fail(repository, begin):
    write(repository, "tests/some.data", "data\0")
    assert run("check_tree.py", repository)[0] == 0
    write(repository, "made", begin + "\0")
    status, output = run("check_tree.py", repository)
    assert status == 1
    assert "made: is a" in output


def test_a_long_file_is_a_warning(repository):
    write(repository, "src/core/long.cpp", "\n" * 301)
    status, output = run("check_tree.py", repository)
    assert status == 0
    assert "warning: src/core/long.cpp: 301 lines" in output
