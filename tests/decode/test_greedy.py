import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.greedy import greedy, write
from regard.decode.ready import Ready
from regard.decode.search import Search, Sentence

BOS, EOS = 0, 1


class Counting:
    """Sentence (n,) is translated 2, 3, ... and ends after n words; the last word is likely."""

    def __init__(self, lengths, place=0):
        self.lengths, self.place = lengths, place

    def reorder(self, rows, sentences=None):
        kept = self.lengths if sentences is None else self.lengths[sentences]
        assert torch.equal(self.lengths[rows], kept.repeat_interleave(len(rows) // len(kept)))
        return Counting(self.lengths[rows], self.place)

    def step(self, token, state):
        logits = torch.full((len(token), 40), -1.0)
        for row, length in enumerate(state.lengths.tolist()):
            logits[row, EOS if state.place == length else 2 + state.place] = 2.0
        return logits, Counting(state.lengths, state.place + 1)


def run(lengths, max_len=20):
    some = [Sentence((length,)) for length in lengths]
    state = Counting(torch.tensor(lengths))
    ready = Ready(state.step, state, BOS, EOS, 1000, torch.device("cpu"))
    return [own for [own] in greedy(ready, some, Search(beam=1, max_len=max_len))]


def test_each_row_ends_at_its_own_end():
    assert [one.ids for one in run([2, 0, 3])] == [(2, 3), (), (2, 3, 4)]
    assert all(one.is_finished for one in run([2, 0, 3]))


def test_a_row_that_never_ends_stops_at_the_limit():
    [short, long] = run([1, 99], max_len=4)
    assert (short.ids, short.is_finished) == ((2,), True)
    assert (long.ids, long.is_finished) == ((2, 3, 4, 5), False)


def test_every_sentence_has_its_own_limit():
    some = [Sentence((99,)), Sentence((99, 0, 0))]
    state = Counting(torch.tensor([99, 99]))
    ready = Ready(state.step, state, BOS, EOS, 24, torch.device("cpu"))
    found = greedy(ready, some, Search(beam=1))
    assert [len(own[0].ids) for own in found] == [22, 24]


def test_what_has_ended_is_no_longer_stepped(toy):
    some, network = [Sentence((n,)) for n in range(40)], toy(3)
    found = greedy(network.ready(some), some, Search(beam=1))
    steps = sum(len(own[0].ids) + 1 for own in found)
    assert steps <= network.n_rows < 1.25 * steps


@given(lengths=st.lists(st.integers(0, 25), min_size=1, max_size=20))
def test_rows_that_have_ended_are_given_back_and_the_others_do_not_notice(lengths):
    expected = [tuple(range(2, 2 + length)) for length in lengths]
    assert [one.ids for one in run(lengths, max_len=30)] == expected


def test_a_score_is_the_mean_log_probability_with_the_end_counted():
    log_p = 2.0 - math.log(math.exp(2.0) + 39 * math.exp(-1.0))
    assert run([4])[0].score == pytest.approx(log_p)


def test_the_first_token_is_bos_and_each_next_the_last_written(toy):
    seen, network = [], toy(1)

    def step(token, state):
        seen.append(token.tolist())
        return network.step(token, state)

    some = [Sentence((7,))]
    ready = network.ready(some)
    ready = Ready(step, ready.state, BOS, EOS, 1000, ready.device)
    [[found]] = greedy(ready, some, Search(beam=1, max_len=9))
    assert seen == [[BOS], *([word] for word in found.ids)]


@given(
    seed=st.integers(0, 10**6),
    prefixes=st.lists(st.lists(st.integers(2, 5), max_size=3).map(tuple), min_size=1, max_size=4),
    no_repeat=st.integers(0, 2),
)
def test_a_sentence_alone_is_the_sentence_in_any_batch(toy, seed, prefixes, no_repeat):
    some = [Sentence((n,) * (1 + n), prefix) for n, prefix in enumerate(prefixes)]
    search, network = Search(beam=1, no_repeat=no_repeat), toy(seed, longest=9)
    together = greedy(network.ready(some), some, search)
    assert together == [greedy(network.ready([one]), [one], search)[0] for one in some]
    for one, [found] in zip(some, together, strict=True):
        assert found.ids[: len(one.prefix)] == one.prefix


def test_where_nothing_may_follow_a_row_is_closed(toy):
    some = [Sentence((7,))]
    search = Search(beam=1, no_repeat=1, min_len=50)  # four words, each once, and then?
    [[found]] = greedy(toy(1).ready(some), some, search)
    assert sorted(found.ids) == [2, 3, 4, 5]
    assert not found.is_finished
    assert math.isfinite(found.score)


def test_several_rows_of_a_sentence_are_written_side_by_side_and_come_best_first(toy):
    some = [Sentence((7,)), Sentence((8,))]
    rank = torch.tensor([0, 1, 2] * 2)  # each row of a sentence takes another word

    def choose(log_p, n_said, rows):
        return log_p.argsort(descending=True)[torch.arange(len(rows)), rank[rows]]

    found = write(toy(1).ready(some), some, Search(max_len=3), choose, each=3)
    for own in found:
        assert len({one.ids for one in own}) == 3
        assert [one.score for one in own] == sorted((one.score for one in own), reverse=True)
    [[best], [other]] = greedy(toy(1).ready(some), some, Search(max_len=3))
    assert best in found[0]
    assert other in found[1]
