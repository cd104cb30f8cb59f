"""The documents' examples, as they stand: C and C++ compiled and run against the wheel's library, Python and shell run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatefold import _c

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {"cpp": ["c++", "-std=c++20", *WARNINGS], "c": ["cc", "-std=c11", *WARNINGS]}

# Fragments: what is there before they begin.
CPP_BEFORE = """#include <cstdint>
#include <vector>
"""
CPP_AROUND = """int main() {{
  const std::int64_t tokens = 1;
  const std::vector<std::uint16_t> weights(std::size_t{{4096}} * 14336), input(4096);
  std::vector<std::uint16_t> output(4096, 1);
  const void *x = input.data(), *w_gate = weights.data(), *w_up = weights.data(), *w_down = weights.data();
  void* y = output.data();
{body}
  return output == input ? 0 : 1;  // zeros
}}
"""
PYTHON_BEFORE = {
    "README.md": """
import numpy as np
from transformers import LlamaConfig, LlamaForCausalLM
x, w_gate, w_up = (np.ones(shape, np.float32) for shape in ((4, 64), (96, 64), (96, 64)))
w_down = np.ones((64, 96), np.float32)
model = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
                                     num_attention_heads=4))
""",
    "docs/python.md": """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
x, w_gate, w_up, w_down = (torch.ones(shape) for shape in ((4, 64), (96, 64), (96, 64), (64, 96)))
w_gate_up = torch.ones(192, 64)
model = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
                                     num_attention_heads=4))
""",
}
PYTHON_BEFORE["python/README.md"] = PYTHON_BEFORE["README.md"]
NEEDS_SEVERAL_GPUS = 'init_device_mesh("cuda", (8,))'


def blocks(*languages):
    found = []
    for document in DOCUMENTS:
        name = document.relative_to(ROOT).as_posix()
        for number, (language, text) in enumerate(BLOCK.findall(document.read_text()), 1):
            if language in languages:
                found.append(pytest.param(name, language, text, id=f"{name}:{number}"))
    return found


def must(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def whole_program(text):
    """A fragment's includes stay where they are."""
    if "int main" in text:
        return text
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = [f"  {line}" for line in lines if not line.startswith("#include")]
    return CPP_BEFORE + "\n".join(includes) + "\n" + CPP_AROUND.format(body="\n".join(body))


@pytest.mark.parametrize("document, language, text", blocks("c", "cpp"))
def test_programs_compile_and_run(document, language, text, tmp_path):
    source = tmp_path / f"example.{language}"
    source.write_text(whole_program(text) if language == "cpp" else text)
    library = ["-L", str(_c.NATIVE), "-lgatefold", f"-Wl,-rpath,{_c.NATIVE}"]
    must([*COMPILERS[language], "-I", str(ROOT / "include"), str(source), "-o", "example", *library], tmp_path)
    must(["./example"], tmp_path)


def python_documents():
    return sorted({parameter.values[0] for parameter in blocks("python")})


@pytest.mark.parametrize("document", python_documents())
def test_python_runs(document, tmp_path):
    """A document's blocks one after another, as a reader would type them."""
    texts = [p.values[2] for p in blocks("python") if p.values[0] == document and NEEDS_SEVERAL_GPUS not in p.values[2]]
    must([sys.executable, "-c", PYTHON_BEFORE.get(document, "") + "\n".join(texts)], tmp_path)


@pytest.mark.parametrize("document, language, text", blocks("sh"))
def test_commands_run(document, language, text, tmp_path):
    must(["bash", "-euo", "pipefail", "-c", text], tmp_path, PATH=f"{_c.NATIVE}:{os.environ['PATH']}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_named_files_exist(document):
    text = document.read_text()
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for link in links:
        if not re.match(r"[a-z]+:", link):
            assert (document.parent / link).exists(), link
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for anchor in re.findall(r"\]\(#([^)\s]+)\)", text):
        assert anchor in anchors or re.sub(r"-\d+$", "", anchor) in anchors, anchor
    if document.name == "extending.md":  # a recipe's files, as a table names them
        for name in re.findall(r"`((?:include|src|tests|python|tools|docs)/[\w./]+)`", text):
            assert (ROOT / name).exists(), name


def test_there_are_examples_of_every_kind():
    """So that a change of how they are marked doesn't leave none."""
    assert len(blocks("cpp")) >= 5 and len(blocks("c")) >= 1 and len(blocks("sh")) >= 2
    assert {"README.md", "docs/getting_started.md", "docs/python.md", "python/README.md"} <= set(python_documents())
