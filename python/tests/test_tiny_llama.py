"""examples/tiny_llama: its pieces run, small, and the committed table is that of the committed result."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "tiny_llama"
RESULT = ROOT / "results" / "cpu" / "tiny_llama.json"
sys.path.insert(0, str(EXAMPLE))

import corpus  # noqa: E402
import evaluate  # noqa: E402
import model as tiny  # noqa: E402
import table  # noqa: E402
import train  # noqa: E402


def rows_of(path):
    return json.loads(path.read_text())["rows"]


def test_the_committed_weights_are_evaluated(tmp_path):
    """One seed, a little text: the same program that made the committed result."""
    output = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "evaluate.py"), str(EXAMPLE / "weights" / "seed1.safetensors"), "--pieces", "6",
         "--prompts", "3", "--continue-bytes", "8", "--output", str(output)], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = rows_of(output)
    assert [(row["dtype"], row["provider"]) for row in rows] == [
        ("fp32", "stock"), ("bf16", "stock"), ("bf16", "gatefold"), ("fp16", "stock"), ("fp16", "gatefold"),
    ]  # fmt: skip
    fp32 = rows[0]
    assert fp32["divergence"] == 0 and fp32["greedy_agreement"] == fp32["continuation_agreement"] == 1
    # A byte without a model costs log 256 = 5.5 nats, by its frequency in such text 3.2 or more.
    assert 0.5 < fp32["loss"] < 2.5
    for row in rows[1:]:
        # bf16's numbers are within 2^-8 each; a wrong MLP is far beyond ten such steps of a nat.
        assert 0 < row["divergence"] < 10 * 2**-8 and row["loss_distance"] < 10 * 2**-8
        assert row["greedy_agreement"] > 0.9
    assert rows[2]["divergence"] != rows[1]["divergence"], "the patched model computes as the stock one"


def test_training_lowers_the_loss_and_is_repeatable(tmp_path, monkeypatch):
    """A few steps of small batches."""
    monkeypatch.setattr(train, "BATCH", 4)
    monkeypatch.setattr(tiny, "LENGTH", 64)
    texts = corpus.read(held_out=False)
    ids = corpus.windows(texts, 8, 64, torch.Generator().manual_seed(5))
    models = [train.train(7, steps, texts) for steps in (1, 25)]
    with torch.no_grad():
        before, after = (model(ids, labels=ids).loss.item() for model in models)
    assert after < before - 1
    first, second = train.train(7, 2, texts), train.train(7, 2, texts)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters()))
    tiny.save(first, tmp_path / "seed7.safetensors")
    again = tiny.load(tmp_path / "seed7.safetensors", torch.float32)
    for a, b in zip(first.parameters(), again.parameters()):
        assert torch.equal(a.bfloat16().float(), b)


def test_no_file_is_both_trained_on_and_held_out():
    for kind in corpus.KINDS:
        files = corpus._files(kind)
        held_out = [path for path in files if corpus._is_held_out(kind, path)]
        assert not files or 0.05 < len(held_out) / len(files) < 0.15, kind  # a tenth
        names = {path.name for path in held_out}
        assert not [path for path in files if path.name in names and path not in held_out]


def test_divergence_and_agreement_of_known_distributions(monkeypatch):
    judge = evaluate.Judge.__new__(evaluate.Judge)
    log = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]], dtype=torch.float64))
    other = torch.log(torch.tensor([[[0.25, 0.5, 0.25], [0.1, 0.2, 0.7]]], dtype=torch.float64))
    judge.expected, judge.ids, judge.prompts, judge.length = [log], None, None, 0
    judge.written = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4]])
    monkeypatch.setattr(evaluate, "log_probabilities", lambda model, ids: iter([(other, torch.tensor([[1, 2]]))]))
    monkeypatch.setattr(evaluate, "continuations", lambda *_: torch.tensor([[1, 2, 9, 4], [1, 2, 3, 4]]))
    found = judge.judge(None)
    ln2 = torch.log(torch.tensor(2.0)).item()
    assert found["divergence"] == pytest.approx((0.5 * ln2 - 0.25 * ln2) / 2)  # of two bytes the second is alike
    assert found["loss"] == pytest.approx((ln2 - torch.log(torch.tensor(0.7)).item()) / 2)
    assert found["accuracy"] == 1 and found["greedy_agreement"] == 0.5
    assert found["continuation_agreement"] == 0.75  # the fourth byte comes after a difference


def test_the_table_in_the_docs_is_the_committed_result_s():
    assert table.markdown(rows_of(RESULT)) in (ROOT / "docs" / "tiny_llama.md").read_text()


def test_no_model_got_worse():
    """The committed result, of five seeds and both types: what the documents claim."""
    rows = rows_of(RESULT)
    beyond_95_percent = 2.776  # standard errors: Student's t with four degrees of freedom
    for dtype in ("bf16", "fp16"):
        assert len(set(table.by_seed(rows, dtype, "gatefold", "divergence"))) == 5
        for key in table.MEASURES:
            assert table.worse_by(rows, dtype, key) < beyond_95_percent, (dtype, key)
        assert table.worse_by(rows, dtype, "divergence") < -beyond_95_percent
