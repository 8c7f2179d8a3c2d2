"""Hypotheses read off for many sentences together are those that one would read off by hand."""

import random

import numpy as np
import pytest
import torch

from regard.decode.finished import Coming, Finished
from regard.decode.search import Hypothesis, Search

STEPS, WORDS = 7, 50


def written(beam, n_sentences=40):
    """Searches that ended or were cut off; scores are few, so that some hypotheses are equal."""
    draw = np.random.default_rng(beam)
    room = n_sentences, STEPS, beam
    end_scores = np.where(
        draw.random(room) < 0.2, -draw.integers(1, 4, room).astype(np.float64), -np.inf
    )
    n_said = draw.integers(1, STEPS + 1, n_sentences)
    own = np.arange(STEPS) < n_said[:, None]
    n_finished = (np.isfinite(end_scores) & own[..., None]).sum((1, 2))
    totals = np.where(draw.random(room[::2]) < 0.8, -5.0 * draw.random(room[::2]), -np.inf)
    words, parents, ends = (draw.integers(0, most, room) for most in (WORDS, beam, beam))
    return Finished(n_said, n_finished, end_scores, totals, words, parents, ends.astype(np.int32))


def one_by_one(done, sentence, search):
    """The same for one sentence, as simply as it can be said."""
    n = int(done.n_said[sentence])
    found = [
        (float(done.end_scores[sentence, t, c]), t, int(done.end_parents[sentence, t, c]))
        for t in range(n)
        for c in range(search.beam)
        if done.end_scores[sentence, t, c] > -np.inf
    ]
    if done.n_finished[sentence] < search.beam:
        totals = enumerate(done.totals[sentence].tolist())
        found += [(x / n**search.length_penalty, n, beam) for beam, x in totals if x > -np.inf]
    found.sort(key=lambda one: one[0], reverse=True)
    hypotheses = []
    for score, length, beam in found[: search.nbest]:
        ids = []
        for t in range(length - 1, -1, -1):
            ids.insert(0, int(done.words[sentence, t, beam]))
            beam = int(done.parents[sentence, t, beam])
        hypotheses.append(Hypothesis(tuple(ids), score, length < n))
    return hypotheses


@pytest.mark.parametrize(("beam", "nbest"), [(1, 1), (5, 1), (5, 3), (5, 5), (2, 3)])
@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_sentences_read_off_together_are_those_read_off_one_by_one(beam, nbest, penalty):
    done, search = written(beam), Search(beam=beam, nbest=nbest, length_penalty=penalty)
    expected = [one_by_one(done, sentence, search) for sentence in range(len(done.n_said))]
    assert list(done.hypotheses(search)) == expected
    ends = [one.is_finished for own in expected for one in own]
    assert any(ends), "some came to an end ..."
    assert not all(ends), "... and some were cut off"
    assert any(one.ids == () for own in expected for one in own), "an end may be all that is said"


def test_what_is_read_off_is_plain_python():
    """Whoever writes it as JSON, or asks for its type, need not know of arrays."""
    own = list(written(3).hypotheses(Search(beam=3, nbest=3)))
    assert {type(one.score) for some in own for one in some} == {float}
    assert {type(one.is_finished) for some in own for one in some} == {bool}
    assert {type(id) for some in own for one in some for id in one.ids} == {int}


def test_a_sentence_of_which_nothing_came_has_no_hypotheses():
    nothing = np.full((1, 2, 2), -np.inf)
    numbers = np.zeros((1, 2, 2), dtype=np.int64)
    done = Finished(np.array([2]), np.array([0]), nothing, nothing[:, 0], numbers, numbers, numbers)
    assert list(done.hypotheses(Search(beam=2))) == [[]]


def test_numbers_of_all_types_come_in_one_copy_as_they_are():
    draw = random.Random(1)
    tensors = [
        torch.tensor([[draw.random(), -torch.inf]], dtype=torch.float64),
        torch.arange(6).view(3, 2).t(),
        torch.zeros(2, 0, dtype=torch.int32),
        torch.tensor([[[7]], [[-8]]], dtype=torch.int32),
    ]
    for ours, tensor in zip(Coming(tensors).here(), tensors, strict=True):
        np.testing.assert_array_equal(ours, tensor.numpy(), strict=True)
