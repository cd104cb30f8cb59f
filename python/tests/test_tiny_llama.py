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
import judge as judging  # noqa: E402
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
         "--prompts", "3", "--continue-bytes", "8", "--jobs", "1", "--output", str(output)], capture_output=True, text=True)  # fmt: skip
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
    judge = judging.Judge.__new__(judging.Judge)
    log = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]], dtype=torch.float64))
    other = torch.log(torch.tensor([[[0.25, 0.5, 0.25], [0.1, 0.2, 0.7]]], dtype=torch.float64))
    judge.expected, judge.ids, judge.prompts, judge.length = [log], None, None, 0
    judge.written = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4]])
    monkeypatch.setattr(judging, "logits_of", lambda model, ids: iter([(other, torch.tensor([[1, 2]]))]))
    monkeypatch.setattr(judging, "continuations", lambda *_: torch.tensor([[1, 2, 9, 4], [1, 2, 3, 4]]))
    verdict = judge.judge(None)
    found = verdict.means()
    ln2 = torch.log(torch.tensor(2.0)).item()
    assert found["divergence"] == pytest.approx((0.5 * ln2 - 0.25 * ln2) / 2)  # of two bytes the second is alike
    assert found["loss"] == pytest.approx((ln2 - torch.log(torch.tensor(0.7)).item()) / 2)
    assert found["accuracy"] == 1 and found["greedy_agreement"] == 0.5
    assert found["tied"] == found["tied_difference"] == 0
    assert verdict.continuation_agreement.tolist() == [0.5, 1]  # the fourth byte comes after a difference


def test_a_tie_is_counted_where_it_decides(monkeypatch):
    """Of two equal logits the lower byte's is taken: against fp32's choice here, with it there."""
    judge = judging.Judge.__new__(judging.Judge)
    judge.expected = [torch.log(torch.tensor([[[0.3, 0.6, 0.1], [0.6, 0.3, 0.1]]], dtype=torch.float64))]
    judge.ids, judge.prompts, judge.length, judge.written = None, None, 0, torch.zeros(1, 4)
    logits = torch.tensor([[[2, 2, 1], [2, 2, 1]]], dtype=torch.float16)
    monkeypatch.setattr(judging, "logits_of", lambda model, ids: iter([(logits, torch.tensor([[1, 0]]))]))
    monkeypatch.setattr(judging, "continuations", lambda *_: torch.zeros(1, 4))
    found = judge.judge(None).means()
    assert (found["tied"], found["tied_difference"], found["greedy_agreement"]) == (1, 0.5, 0.5)


def verdict_of(loss, continued):
    zero = torch.zeros(len(loss), dtype=torch.float64)
    continued = torch.tensor(continued, dtype=torch.float64)
    return judging.Verdict(torch.tensor(loss, dtype=torch.float64), zero, zero, zero, zero, zero, continued)


def test_errors_are_of_each_text_s_own_difference():
    fp32, stock, ours = verdict_of([1, 2, 3], [1, 1, 1, 1]), verdict_of([2, 4, 3], [1, 0.5, 1, 0.25]), verdict_of(
        [0, 0, 3], [1, 0.25, 0.5, 1])  # fmt: skip
    errors = judging.paired_errors(ours, stock, fp32)
    # Distances 1, 2, 0 (stock, above fp32) and 1, 2, 0 (ours, below): alike in every text.
    assert errors["loss_distance"] == 0
    # Differences 0, -1/4, -1/2, 3/4 of mean 0: variance (1/16 + 1/4 + 9/16) / 3, of the mean a quarter of that.
    assert errors["continuation_agreement"] == pytest.approx((14 / 16 / 3 / 4) ** 0.5)
    assert judging.differing_continuations(ours, stock) == {"both": 1, "stock": 1, "gatefold": 1}


def test_the_error_of_a_mean_is_at_least_that_of_its_texts():
    def rows(differences, paired):
        return [row for seed, difference in enumerate(differences) for row in (
            {"seed": seed, "dtype": "fp16", "provider": "stock", "accuracy": 0.5},
            {"seed": seed, "dtype": "fp16", "provider": "gatefold", "accuracy": 0.5 + difference,
             "paired_error": {"accuracy": paired}})]  # fmt: skip

    spread = rows([0.01, 0.03], 0.001)  # the seeds' differences have the variance 2e-4, their mean half of that
    assert table.error_of_differences(spread, "fp16", "accuracy") == pytest.approx(0.01)
    alike = rows([0.02, 0.02], 0.01)
    assert table.error_of_differences(alike, "fp16", "accuracy") == pytest.approx(0.01 / 2**0.5)
    assert table.worse_by(alike, "fp16", "accuracy") == pytest.approx(-2 * 2**0.5)


def test_sign_test_of_known_counts():
    assert table.sign_test(0, 5) == pytest.approx(2 / 32)
    assert table.sign_test(8, 15) == pytest.approx(0.2100, abs=5e-5)  # 2 (1 + 23 + 253 + ... + 490314) / 2^23
    assert table.sign_test(3, 3) == 1


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
