"""How far a model is from the same weights in fp32: of every piece of text, and of all together."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass
class Verdict:
    """Of each piece of text, means over its bytes, and of each continuation; float64 [pieces], [prompts]."""

    loss: Tensor  # of the next byte, nats
    accuracy: Tensor  # the likeliest byte is the next one
    greedy_agreement: Tensor  # the likeliest byte is fp32's
    divergence: Tensor  # Kullback and Leibler's, fp32's distribution from this one
    tied: Tensor  # two bytes' logits are the largest, equal in the model's type: the lower byte is taken
    tied_difference: Tensor  # such, and the likeliest byte is not fp32's
    continuation_agreement: Tensor  # the share before the first byte that isn't fp32's

    def means(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name).mean().item() for field in fields(self)}

    def measured(self, fp32: "Verdict") -> dict[str, Tensor]:
        """What two models are compared by. The loss's distance is of the mean; a piece's part in it has its sign."""
        distance = self.loss - fp32.loss
        return {
            "loss_distance": distance * distance.mean().sign(), "divergence": self.divergence,
            "greedy_agreement": self.greedy_agreement, "continuation_agreement": self.continuation_agreement,
            "accuracy": self.accuracy,
        }  # fmt: skip


def paired_errors(ours: Verdict, stock: Verdict, fp32: Verdict) -> dict[str, float]:
    """Standard errors, over the texts, of the means of ours - stock's of the same text."""
    a, b = ours.measured(fp32), stock.measured(fp32)
    return {key: ((a[key] - b[key]).std() / len(a[key]) ** 0.5).item() for key in a}


def differing_continuations(ours: Verdict, stock: Verdict) -> dict[str, int]:
    """How many continuations are not fp32's: with both MLPs, or with one alone."""
    a, b = (verdict.continuation_agreement < 1 for verdict in (ours, stock))
    return {name: int(which.sum()) for name, which in (("both", a & b), ("stock", b & ~a), ("gatefold", a & ~b))}


def logits_of(model: torch.nn.Module, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """In batches: of every next byte, in the model's type [B, LENGTH - 1, 256], and which it is [B, LENGTH - 1]."""
    for batch in ids.split(16):
        yield model(batch, use_cache=False).logits[:, :-1], batch[:, 1:]


def continuations(model: torch.nn.Module, prompts: Tensor, length: int) -> Tensor:
    """The likeliest next byte again and again. prompts [P, PROMPT] -> [P, length]"""
    cache, ids, written = None, prompts, []
    for _ in range(length):
        result = model(ids, past_key_values=cache, use_cache=True)
        cache, ids = result.past_key_values, result.logits[:, -1:].argmax(-1)
        written.append(ids)
    return torch.cat(written, 1)


def share_before_difference(a: Tensor, b: Tensor) -> Tensor:
    """Of the bytes of continuations [P, L], those before the first in which the two differ: [P]"""
    return (a == b).long().cumprod(1).double().mean(1)


class Judge:
    """Holds what the fp32 model says of some text, and how it continues some."""

    def __init__(self, fp32: torch.nn.Module, ids: Tensor, prompts: Tensor, length: int) -> None:
        self.ids, self.prompts, self.length = ids, prompts, length
        batches = list(logits_of(fp32, ids))
        self.expected = [torch.log_softmax(logits.double(), -1) for logits, _ in batches]
        self.written = continuations(fp32, prompts, length)
        self.fp32 = self._verdict(batches, self.written)

    def judge(self, model: torch.nn.Module) -> Verdict:
        return self._verdict(logits_of(model, self.ids), continuations(model, self.prompts, self.length))

    def _verdict(self, batches: Iterable[tuple[Tensor, Tensor]], written: Tensor) -> Verdict:
        by_batch = []
        for expected, (logits, following) in zip(self.expected, batches):
            log = torch.log_softmax(logits.double(), -1)
            largest = logits.topk(2, -1).values
            choice, tied = log.argmax(-1), largest[..., 0] == largest[..., 1]
            agrees = choice == expected.argmax(-1)
            of_bytes = [
                -log.gather(-1, following[..., None])[..., 0], choice == following, agrees,
                (expected.exp() * (expected - log)).sum(-1), tied, tied & ~agrees,
            ]  # fmt: skip
            by_batch.append([value.double().mean(-1) for value in of_bytes])
        return Verdict(*map(torch.cat, zip(*by_batch)), share_before_difference(self.written, written))
