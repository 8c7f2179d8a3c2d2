"""The search that never waits finds what the search beside it finds."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from regard.attention import padding_mask
from regard.config import ModelConfig
from regard.decode import rooms
from regard.decode.engines.torch import TorchEngine
from regard.decode.finished import Coming
from regard.decode.ready import padded_ids
from regard.decode.search import Search, Sentence
from regard.decode.slots import Slots
from regard.model import build_model

EOS = 2


def engine(device="cpu", longest=24, **settings):
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=16, n_heads=2, n_layers=2, d_ff=16, max_len=longest, output_bias=True, **settings
    )
    network = build_model(config, 12, 12).to(device).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3.0 if weight.ndim > 1 else 1.0)  # so that it is sure of some words
        network.output.bias[EOS] = 2.0
    return TorchEngine(
        [network], pad=0, bos=1, eos=EOS, longest=longest, device=torch.device(device)
    )


def sentences(n, longest=9):
    draw = random.Random(1)
    return [
        Sentence(tuple(draw.choices(range(3, 12), k=draw.randint(1, longest)))) for _ in range(n)
    ]


def assert_same(found, expected):
    assert [[(h.ids, h.is_finished) for h in own] for own in found] == [
        [(h.ids, h.is_finished) for h in own] for own in expected
    ]
    for own, others in zip(found, expected, strict=True):
        assert [h.score for h in own] == pytest.approx([h.score for h in others], rel=1e-4)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_slots_find_what_the_search_beside_the_network_finds(monkeypatch, positions, beam, penalty):
    """With fewer slots than sentences, so that they are used again while others are not done."""
    monkeypatch.setattr(rooms, "ROWS", 3 * beam)
    monkeypatch.setattr(rooms, "WIDE_ROOM", 8)
    search = Search(beam=beam, nbest=beam, length_penalty=penalty, max_len=0)
    ours, some = engine(positions=positions), sentences(9, longest=4)
    expected = ours.search(some, search)
    assert_same(ours._rooms.search(some, search), expected)
    ends = [one.is_finished for own in expected for one in own]
    assert any(ends), "some come to an end ..."
    assert not all(ends), "... and some are cut off"


@pytest.mark.parametrize("told", [1, 4, 256])
@pytest.mark.parametrize("is_late", [False, True])
def test_each_sentence_is_heard_of_once_however_many_are_told_at_a_time(monkeypatch, told, is_late):
    monkeypatch.setattr(rooms, "ROWS", 3)
    monkeypatch.setattr(rooms, "WIDE_ROOM", 8)
    monkeypatch.setattr(rooms, "TOLD", told)
    monkeypatch.setattr(Coming, "is_here", lambda _: not is_late)
    ours, some, heard = engine(), sentences(20, longest=4), []
    found = ours._rooms.search(some, Search(beam=1), lambda *one: heard.append(one))
    assert sorted(heard, key=lambda one: one[0]) == list(enumerate(found))
    assert_same(found, ours.search(some, Search(beam=1)))


def test_sentences_are_heard_of_while_others_are_searched_for(monkeypatch):
    monkeypatch.setattr(rooms, "ROWS", 2)
    monkeypatch.setattr(rooms, "LOOK", 1)
    events, step = [], rooms.Slots.step
    monkeypatch.setattr(rooms.Slots, "step", lambda self: events.append("step") or step(self))
    engine()._rooms.search(sentences(9), Search(beam=1), lambda *_: events.append("heard"))
    assert "step" in events[events.index("heard") :]


@pytest.mark.parametrize("beam", [1, 3])
def test_the_last_sentences_go_on_in_fewer_slots(monkeypatch, beam):
    monkeypatch.setattr(rooms, "LOOK", 1)
    monkeypatch.setattr(rooms, "LEFT", 0.5)
    monkeypatch.setattr(rooms, "FEWEST", 1)
    moves, take = [], rooms.Slots.take
    monkeypatch.setattr(
        rooms.Slots, "take", lambda self, *left: moves.append(len(left[1])) or take(self, *left)
    )
    search = Search(beam=beam, nbest=beam, length_penalty=1.0)
    ours, some = engine(longest=40), sentences(9)  # who never ends has its own limit
    assert_same(ours._rooms.search(some, search), ours.search(some, search))
    assert moves == sorted(moves, reverse=True)
    assert len(moves) > 1


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("look", [1, 3])
@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_looked_at_a_block_later_is_the_same(monkeypatch, beam, look, is_late):
    """Even if all that was written is read off at the end, when its slots had others in them."""
    monkeypatch.setattr(rooms, "ROWS", 6 * beam)
    monkeypatch.setattr(rooms, "LOOK", look)
    monkeypatch.setattr(rooms, "LEFT", 0.5)
    monkeypatch.setattr(rooms, "FEWEST", 1)
    monkeypatch.setattr(Coming, "is_here", lambda _: not is_late)
    moves, take = [], rooms.Slots.take
    monkeypatch.setattr(
        rooms.Slots, "take", lambda self, *left: moves.append(len(left[1])) or take(self, *left)
    )
    search = Search(beam=beam, nbest=beam)
    ours, some = engine(longest=40), sentences(31)
    ours._rooms.behind = 1
    assert_same(ours._rooms.search(some, search), ours.search(some, search))
    assert moves


@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_in_a_slot_whose_last_one_is_seen_closed_once_more_is_not_lost(
    monkeypatch, beam
):
    """Every look is older than the sentence that was read since; each still says all it has to."""
    monkeypatch.setattr(rooms, "ROWS", beam)
    monkeypatch.setattr(rooms, "LOOK", 1)
    is_stale, closed = [], rooms.Look.closed

    def seen(look, owners):
        *_, is_open = look.numbers.here()
        is_stale.append((look.owners != owners)[~is_open].any())
        return closed(look, owners)

    monkeypatch.setattr(rooms.Look, "closed", seen)
    search = Search(beam=beam, nbest=beam)
    ours, some = engine(), sentences(7)
    ours.network.output.bias.data[EOS] = 9.0  # they end by themselves, which nobody knows before
    ours._rooms.behind = 1
    found = ours._rooms.search(some, search)
    assert all(one.is_finished for own in found for one in own)
    assert_same(found, ours.search(some, search))
    assert sum(is_stale) == len(some) - 1, "all but the first follow upon another"


@pytest.mark.parametrize("limit", [2, 5, 30])
@pytest.mark.parametrize("behind", [0, 1])
def test_one_block_is_issued_in_vain_if_nobody_knew_the_end_and_else_none(
    monkeypatch, behind, limit
):
    monkeypatch.setattr(rooms, "LOOK", 2)
    steps, recorded = [], rooms._recorded
    monkeypatch.setattr(
        rooms, "_recorded", lambda step, on: recorded(lambda: steps.append(step()), on)
    )
    ours, some, search = engine(longest=40), sentences(6), Search(beam=2, max_len=limit)
    ours.network.output.bias.data[EOS] = 99.0 if limit == 30 else -99.0  # at once, or never
    ours._rooms.behind = behind
    found = ours._rooms.search(some, search)
    if limit == 30:
        assert all(own[0].is_finished for own in found)
        assert len(steps) == 2 + 2 * behind
    else:
        assert {len(own[0].ids) for own in found} == {limit}
        assert len(steps) == limit + limit % 2


def test_numbers_on_their_way_are_those_that_were_there_when_they_were_asked_for():
    numbers = torch.arange(3)
    coming = Coming([numbers, numbers > 1])
    numbers += 1
    assert coming.is_here()
    assert [part.tolist() for part in coming.here()] == [[0, 1, 2], [False, False, True]]


def test_there_are_hardly_more_slots_than_sentences():
    numbers = [1, 2, 7, 8, 9, 16, 17, 1024, 1025, 3000, 4096]
    assert [rooms._in_eighths(n) for n in numbers] == [
        *[1, 2, 7, 8, 10, 16, 20, 1024, 1280, 3072, 4096]
    ]


@pytest.mark.parametrize("most", [7, 9, 13])
def test_the_last_sentences_do_not_move_to_the_slots_that_they_are_in(monkeypatch, most):
    """Which are kept too, and hardly more than are needed where nearly half of them stay."""
    monkeypatch.setattr(rooms, "ROWS", most)
    ours, search = engine(), Search(beam=1)
    ours._rooms.search(sentences(most), search)
    slots, _ = ours._rooms.kept[most]
    shape = ours._rooms.shape
    for n in range(1, most // 2 + 1):
        fewer, _ = ours._rooms._slots(n, shape, search, beside=slots)
        assert fewer is not slots
        assert n <= fewer.n_slots < most


def test_slots_are_used_again_by_searches_that_are_alike(monkeypatch):
    """And by nobody else: another beam, or longer sentences, want other ones."""
    monkeypatch.setattr(rooms, "LOOK", 1)
    monkeypatch.setattr(rooms, "SOURCE", 16)
    made, make = [], rooms.Slots.__init__
    monkeypatch.setattr(
        rooms.Slots, "__init__", lambda self, *a, **b: made.append(a[2]) or make(self, *a, **b)
    )
    ours, narrow, wide = engine(), Search(beam=2, nbest=2), Search(beam=3, nbest=3)
    for search, some, so_many in (
        (narrow, sentences(5), [5]),
        (narrow, sentences(3), [5]),  # some more than are needed will do ...
        (narrow, sentences(2), [5, 2]),  # ... but not many more
        (narrow, sentences(6), [5, 2, 6]),
        (narrow, sentences(4), [5, 2, 6]),
        (wide, sentences(3), [5, 2, 6, 3]),
        (wide, [*sentences(2), Sentence((3,) * 20)], [5, 2, 6, 3, 3]),
        (narrow, sentences(3), [5, 2, 6, 3, 3, 3]),
    ):
        assert_same(ours._rooms.search(some, search), ours.search(some, search))
        assert made == so_many


@pytest.mark.parametrize("is_narrow", [False, True])
def test_what_is_kept_can_be_let_go_and_does_not_outlive_autocast(is_narrow):
    """Its narrower copies of the weights are gone with it, and a recording would read them."""
    ours, some = engine(), sentences(3)
    with torch.autocast("cpu", torch.bfloat16, enabled=is_narrow):
        ours._rooms.search(some, Search(beam=2))
    assert bool(ours._rooms.kept) is not is_narrow
    ours.forget()
    assert not ours._rooms.kept
    engine().forget()  # nothing is kept yet


def test_a_search_under_autocast_does_not_meet_the_slots_of_one_without():
    """Nor the other way round, even if it breaks off."""
    ours, some, search = engine(), sentences(3), Search(beam=2)
    expected = ours._rooms.search(some, search)
    with torch.autocast("cpu", torch.bfloat16), pytest.MonkeyPatch.context() as broken:
        broken.setattr(rooms.Slots, "finished", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ours._rooms.search(some, search)
    assert not ours._rooms.kept
    assert_same(ours._rooms.search(some, search), expected)


def test_searches_in_several_threads_do_not_meet():
    ours, search = engine(), Search(beam=2)
    texts = [sentences(5), sentences(7)[2:], sentences(9)[4:]]
    expected = [ours.search(some, search) for some in texts]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda some: ours._rooms.search(some, search), texts * 3))
    for own, others in zip(found, expected * 3, strict=True):
        assert_same(own, others)


def test_no_more_slots_are_kept_than_there_is_memory_for(monkeypatch):
    monkeypatch.setattr(rooms, "ROWS", 16)
    ours = engine()
    for n in (1, 2, 3, 5, 9, 16, 4, 1):
        ours._rooms.search(sentences(n), Search(beam=1))
        assert sum(ours._rooms.kept) <= 2 * ours._rooms.most


def test_a_search_that_breaks_off_leaves_nothing_behind(monkeypatch):
    ours, some, search = engine(), sentences(5), Search(beam=2, nbest=2)
    with monkeypatch.context() as broken:
        broken.setattr(rooms.Slots, "finished", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ours._rooms.search(some, search)
    assert_same(ours._rooms.search(some[:3], search), ours.search(some[:3], search))


def test_a_word_or_two_are_enough_for_the_narrowest_limits():
    search = Search(beam=3, nbest=3, max_len=1)
    ours, some = engine(), sentences(4)
    assert_same(ours._rooms.search(some, search), ours.search(some, search))


@pytest.mark.parametrize(
    "asked",
    [
        {"temperature": 1.0},
        {"groups": 5},
        {"coverage_penalty": 0.2},
        {"no_repeat": 3},
        {"forbidden": ((3,),)},
        {"min_len": 2},
    ],
)
def test_a_search_that_asks_for_more_is_not_plain(asked):
    assert rooms.is_plain(sentences(2), Search(), EOS)
    assert not rooms.is_plain(sentences(2), Search(**asked), EOS)


def test_a_sentence_that_begins_or_has_to_say_something_is_not_plain():
    assert not rooms.is_plain([Sentence((3, 4), prefix=(5,))], Search(), EOS)
    assert not rooms.is_plain([Sentence((3, 4), terms=(((5,),),))], Search(), EOS)


@pytest.mark.parametrize("settings", [{}, {"positions": "rotary"}, {"score": "additive"}])
@pytest.mark.parametrize("lens", [[1], [6], [3, 1, 9, 5, 1, 2, 16]])
def test_what_is_read_packed_is_remembered_as_if_padded(settings, lens):
    """In slots in any order; of the other slots nothing changes."""
    network, n, draw = engine(**settings).network, len(lens), random.Random(1)
    slots = Slots(network, Search(beam=2), 9, 16, 8, bos=1, eos=EOS, device=torch.device("cpu"))
    rows = [tuple(draw.choices(range(3, 12), k=length)) for length in lens]
    at = np.array([4, 0, 8, 3, 1, 7, 5])[:n]
    with torch.inference_mode():
        slots.read(at, rows, np.arange(n) + 1, 0)
        ids, layout = padded_ids(rows, 0, slots.device)
        expected = network.decoder.remember(network.encode(ids, layout).output)
    for own, others in zip(slots.memory, expected, strict=True):
        for part, other in zip(own, others, strict=True):
            for row, (slot, length) in enumerate(zip(at, lens, strict=True)):
                torch.testing.assert_close(
                    part[slot, :, :length], other[row, :, :length], rtol=1e-5, atol=1e-5
                )
            assert not part[np.setdiff1d(np.arange(9), at)].any()
    assert torch.equal(slots.sees[at], padding_mask(layout.lens, 16))
    assert slots.limits[at].tolist() == list(range(1, n + 1))
    n_said, n_finished, is_open = slots.look().here()
    assert np.flatnonzero(is_open).tolist() == sorted(at)
    assert not n_said.any()
    assert not n_finished.any()


@pytest.mark.gpu
@pytest.mark.parametrize("n_slots", [64, 20])
@pytest.mark.parametrize("beam", [1, 5])
def test_on_a_gpu_the_recorded_search_finds_what_a_cpu_finds(monkeypatch, beam, n_slots):
    """With a slot for each sentence, or fewer; and the last ones move."""
    monkeypatch.setattr(rooms, "ROWS", n_slots * beam)
    monkeypatch.setattr(rooms, "FEWEST", 1)
    monkeypatch.setattr(rooms, "LOOK", 2)
    search = Search(beam=beam, nbest=beam)
    some = sentences(64)
    assert_same(engine("cuda").search(some, search), engine().search(some, search))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_on_a_gpu_nobody_waits_for_what_is_asked_of_slots():
    """A copy that waits for all that was issued before is an error meanwhile."""
    network, at = engine("cuda").network, np.array([2, 0])
    own, fewer = (
        Slots(network, Search(beam=2), n, 16, 8, bos=1, eos=EOS, device=torch.device("cuda"))
        for n in (4, 2)
    )
    with torch.inference_mode():
        own.read(at, [(3, 4), (5,)], np.array([8, 1]), 0)
        own.step()
        torch.cuda.set_sync_debug_mode("error")
        try:
            look, finished = own.look(), own.finished(at, 1)
            fewer.take(own, at, 1, 2)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    n_said, _, is_open = look.here()
    assert n_said.tolist() == [1, 0, 1, 0]
    assert not is_open[0], "it may say one word"
    assert [len(part) for part in finished.here()] == [2] * 5
    assert fewer.n_said.tolist() == [1, 1]
