"""Beam search for many sentences at once, one step of the network at a time; equals `reference.py`.

The search knows no model: it is given a step, which maps a word for each row to the logits of the
next, and a state that can reorder its rows. Rows are sentences times beams; a sentence that is done
gives its rows back, so the last long one is not paid for by all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.reference import Hypothesis
from regard.decode.rules import Rule


class State(Protocol):
    """What a network remembers of each row."""

    def reorder(self, rows: Int[Tensor, "N"]) -> Self:
        """Row i becomes what row `rows[i]` was."""
        ...


S = TypeVar("S", bound=State)
Step = Callable[[Int[Tensor, "N"], S], tuple[Float[Tensor, "N V"], S]]


@dataclass
class _Sentence:
    """What is known of one sentence of the batch."""

    number: int
    finished: list[Hypothesis]


@torch.no_grad()
def beam_search(
    step: Step[S],
    state: S,
    n_sentences: int,
    *,
    width: int,
    max_len: int,
    bos: int,
    eos: int,
    device: torch.device,
    penalty: float = 1.0,
    rules: Sequence[Rule] = (),
) -> list[list[Hypothesis]]:
    """For each sentence its hypotheses, the best first; `state` has one row for each sentence."""
    sentences = [_Sentence(number, []) for number in range(n_sentences)]
    done: list[list[Hypothesis]] = [[] for _ in sentences]
    words_NT = torch.full((n_sentences, 0), bos, device=device)
    token = torch.full((n_sentences,), bos, device=device)
    totals_BW = torch.zeros(n_sentences, 1, device=device)  # one beam, until there is a choice
    for length in range(1, max_len + 1):
        logits, state = step(token, state)
        log_p = logits.float().log_softmax(-1)
        n_words, n_beams = log_p.shape[-1], totals_BW.shape[1]
        if rules:  # only for them are the words brought from the device
            said, owners = words_NT.tolist(), [s.number for s in sentences for _ in range(n_beams)]
            for rule in rules:
                log_p = rule(log_p, said, owners)
        sums = (totals_BW.flatten()[:, None] + log_p).view(len(sentences), -1)
        best = sums.topk(min(2 * width, sums.shape[1]))
        rows_BC = best.indices // n_words + _starts(len(sentences), n_beams, device)
        words_BC = best.indices % n_words
        is_end = words_BC == eos
        _finish(sentences, best.values, is_end, rows_BC, words_NT, width, length, penalty)

        # The best that do not end, in order: ends sort behind all others.
        order = (is_end.long() * 2 * width + torch.arange(is_end.shape[1], device=device)).argsort()
        going_on = order[:, :width]
        living = [b for b, s in enumerate(sentences) if len(s.finished) < width]
        if length == max_len:
            _cut_off(sentences, living, best.values, going_on, is_end, rows_BC, words_BC, words_NT,
                     length, penalty)  # fmt: skip
        for b, sentence in enumerate(sentences):
            if b not in living or length == max_len:
                done[sentence.number] = sorted(sentence.finished, key=lambda h: -h.score)[:width]
        if not living or length == max_len:
            break
        kept = torch.tensor(living, device=device)
        rows, words, totals_BW = (
            tensor.gather(1, going_on)[kept] for tensor in (rows_BC, words_BC, best.values)
        )
        token = words.flatten()
        words_NT = torch.cat([words_NT[rows.flatten()], token[:, None]], dim=1)
        state = state.reorder(rows.flatten())
        sentences = [sentences[b] for b in living]
    return done


def _starts(n_sentences: int, n_beams: int, device: torch.device) -> Int[Tensor, "B 1"]:
    """The first row of each sentence."""
    return (torch.arange(n_sentences, device=device) * n_beams)[:, None]


def _finish(
    sentences: Sequence[_Sentence],
    totals_BC: Float[Tensor, "B C"],
    is_end_BC: Tensor,
    rows_BC: Int[Tensor, "B C"],
    words_NT: Int[Tensor, "N T"],
    width: int,
    length: int,
    penalty: float,
) -> None:
    """Note the hypotheses that end among the best `width`."""
    for b, c in is_end_BC[:, :width].nonzero().tolist():
        total = float(totals_BC[b, c])
        if total > float("-inf"):
            ids = tuple(words_NT[rows_BC[b, c]].tolist())
            sentences[b].finished.append(Hypothesis(ids, total / length**penalty, True))


def _cut_off(
    sentences: Sequence[_Sentence],
    living: Sequence[int],
    totals_BC: Float[Tensor, "B C"],
    going_on: Int[Tensor, "B W"],
    is_end_BC: Tensor,
    rows_BC: Int[Tensor, "B C"],
    words_BC: Int[Tensor, "B C"],
    words_NT: Int[Tensor, "N T"],
    length: int,
    penalty: float,
) -> None:
    """No more words are allowed: what lives is a hypothesis that did not come to its end."""
    for b in living:
        for c in going_on[b].tolist():
            total = float(totals_BC[b, c])
            if bool(is_end_BC[b, c]) or total == float("-inf"):
                continue
            ids = (*words_NT[rows_BC[b, c]].tolist(), int(words_BC[b, c]))
            sentences[b].finished.append(Hypothesis(ids, total / length**penalty, False))
