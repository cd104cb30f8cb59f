"""Every figure from the committed results: drawn, the same bytes again, as committed, and honest about what is missing."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")

from gatefold.report import FIGURES, Missing, Results, _style, draw  # noqa: E402

ROOT = Path(__file__).parents[2]
RESULTS, COMMITTED = ROOT / "results", ROOT / "docs" / "figures"
REMAKE = "make the figures again: python -m gatefold.report results -o docs/figures"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    return {path.name: path for path in draw(Results(RESULTS), folder)}


def test_each_figure_is_drawn_or_its_file_is_really_missing(drawn):
    for name, figure in FIGURES.items():
        if f"{name}-light.svg" in drawn:
            assert f"{name}-dark.svg" in drawn
            continue
        with _style.themed(_style.LIGHT), pytest.raises(Missing) as missing:
            figure(Results(RESULTS), _style.LIGHT)
        wanted = re.match(r"no (\S+\.json) ", str(missing.value)).group(1)
        assert not list(RESULTS.rglob(wanted))
    assert {"gain-light.svg", "throughput-light.svg", "memory-dark.svg", "kv_cache-light.svg", "speedup-dark.svg", "roofline-light.svg",
            "cpu-dark.svg", "swap_ffn-light.svg"} <= set(drawn)  # fmt: skip


def test_pictures_are_of_readme_width_with_their_theme_s_background(drawn):
    for name, path in drawn.items():
        root = ElementTree.parse(path).getroot()
        assert root.tag.endswith("svg")
        assert 600 <= float(root.get("width").removesuffix("pt")) <= 660, name
        theme = _style.DARK if name.endswith("-dark.svg") else _style.LIGHT
        assert f"fill: {theme.background}" in path.read_text()


def test_the_same_files_give_the_same_bytes(drawn, tmp_path):
    for path in draw(Results(RESULTS), tmp_path, only=["throughput", "cpu"]):
        assert path.read_bytes() == drawn[path.name].read_bytes()


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def test_the_committed_figures_are_those_of_the_committed_results(drawn):
    """Numbers may differ by a thousandth of a point: logarithms are not the same on every processor."""
    assert {path.name for path in COMMITTED.glob("*.svg")} == set(drawn), REMAKE
    wanted = (COMMITTED / "matplotlib-version.txt").read_text().strip()
    if matplotlib.__version__ != wanted:
        pytest.skip(f"matplotlib {matplotlib.__version__} draws otherwise than {wanted}, which the figures were made with")
    for name, path in drawn.items():
        ours, committed = path.read_text(), (COMMITTED / name).read_text()
        if ours == committed:
            continue
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", committed), f"{name}: {REMAKE}"
        for a, b in zip(NUMBER.findall(ours), NUMBER.findall(committed)):
            assert abs(float(a) - float(b)) <= 1e-3, f"{name}: {REMAKE}"


def test_a_new_result_changes_its_figure(drawn, tmp_path):
    """What is drawn comes from the files."""
    results = tmp_path / "results"
    shutil.copytree(RESULTS, results)
    file = results / "cpu" / "mlp_fp32.json"
    data = json.loads(file.read_text())
    next(row for row in data["rows"] if row["provider"] == "gatefold")["ratio_vs_torch"] *= 1.5
    file.write_text(json.dumps(data))
    (path,) = [path for path in draw(Results(results), tmp_path / "out", only=["cpu"]) if path.name == "cpu-light.svg"]
    assert path.read_bytes() != drawn["cpu-light.svg"].read_bytes()


def test_figures_whose_files_may_come_later_are_drawn_from_such_files(tmp_path):
    """Of decoding there are trials under other names; of whole models a file as bench/llama_shaped.py writes it."""
    machine = tmp_path / "results" / "h100"
    machine.mkdir(parents=True)
    shutil.copy(RESULTS / "h100" / "mlp_decode_second.json", machine / "mlp_decode.json")
    rows = [
        {"phase": phase, "batch": 1, "tokens": 512, "provider": provider, "tokens_per_second": 1e4 * ratio,
         "ratio_vs_stock": ratio, "activation_bytes": memory}
        for phase, memory in (("prefill", 10**9), ("decode", None)) for provider, ratio in (("stock", 1), ("patched", 1.25))
    ]  # fmt: skip
    context = {"gpu": "NVIDIA H100", "layers": 4, "hidden_size": 4096, "intermediate_size": 14336}
    (machine / "llama_shaped.json").write_text(json.dumps({"context": context, "rows": rows}))
    written = draw(Results(tmp_path / "results"), tmp_path / "out", only=["decode", "whole_model"])
    assert [path.name for path in written] == [f"{name}-{theme}.svg" for name in ("decode", "whole_model")
                                               for theme in ("light", "dark")]  # fmt: skip


def report(*arguments):
    return subprocess.run([sys.executable, "-m", "gatefold.report", *map(str, arguments)], capture_output=True, text=True)


def test_missing_data_are_named_and_bad_files_too(tmp_path):
    empty, output = tmp_path / "empty", tmp_path / "out"
    (empty / "cpu").mkdir(parents=True)
    done = report(empty, "-o", output)
    assert done.returncode == 1 and not list(output.iterdir())
    assert len(done.stdout.splitlines()) == len(FIGURES)
    assert "cpu: skipped, no mlp_bf16.json in" in done.stdout
    assert "speedup: skipped, no gate_up_models.json in" in done.stdout
    (empty / "cpu" / "mlp_bf16.json").write_text("{}")
    done = report(empty, "-o", output, "--only", "cpu")
    assert done.returncode == 2 and f"{empty / 'cpu' / 'mlp_bf16.json'}: no result file" in done.stderr
    assert "Traceback" not in done.stderr
    done = report(empty, "-o", output, "--only", "cup")
    assert done.returncode == 2 and "cup: none of gain" in done.stderr


def test_the_models_memory_is_what_the_tool_says():
    done = subprocess.run([sys.executable, "-m", "gatefold", "memory", "--chunk", "512", "--format", "json"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout)["rows"] == json.loads((RESULTS / "memory.json").read_text())["rows"]


def luminance(colour):
    """Of WCAG 2: linear light, weighted."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", _style.THEMES, ids=lambda theme: theme.name)
def test_colours_stand_out(theme):
    """WCAG 2 asks 4.5 : 1 of text, and of graphics 3 : 1."""

    def contrast(a, b):
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    for name in ("text", "muted", "blue"):  # blue: labels of points too
        assert contrast(getattr(theme, name), theme.background) >= 4.5, name
    for name in ("orange", "green", "purple", "pink"):
        assert contrast(getattr(theme, name), theme.background) >= 3, name
    for name in ("slower", "faster"):  # the numbers in the heat map's strongest cells
        assert contrast(theme.text, getattr(theme, name)) >= 4.5, name
