"""Terms stand where the words stood that looked at what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from regard.bundle import write_bundle
from regard.config import ModelConfig
from regard.decode.placing import in_place
from regard.decode.search import Place, Search, Sentence
from regard.decode.terms import lacking
from regard.decode.translator import load
from regard.decode.wording import sentences_of
from regard.model import build_model
from regard.text.tokenizer import train_tokenizer

PIECES = [
    "▁the",
    "▁meeting",
    "▁is",
    "▁over",
    ".",
    "▁sum",
    "mit",
    "会",
    "议",
    "▁mee",
    "ting",
    '"',
    "峰",
    "▁",
    "<0xE5>",
    "<0xB3>",
]
SUMMIT = ((5, 6),)


def placed(said, shares, *, terms=(SUMMIT,), places=None, prefix=()):
    """With a source of two words and an end, of which the first is to be called otherwise."""
    weights = np.array([[share, 0.9 - share, 0.1] for share in shares], dtype=np.float32)
    sentence = Sentence((1, 2, 3), prefix, terms, places or ((Place((0,)),),) * len(terms))
    ids = tuple(PIECES.index(piece) for piece in said.split())
    return in_place(sentence, ids, weights, PIECES, silent={3})


def words(ids):
    return None if ids is None else " ".join(PIECES[id] for id in ids)


def test_a_term_takes_the_place_of_the_word_that_looks_at_its_source():
    said = "▁the ▁meeting ▁is ▁over ."
    assert words(placed(said, [0.5, 0.8, 0.1, 0.0, 0.1])) == "▁the ▁sum mit ▁is ▁over ."


def test_all_words_that_are_sure_go_and_whole_words_only():
    assert words(placed("▁the ▁mee ting ▁is", [0.1, 0.1, 0.8, 0.1])) == "▁the ▁sum mit ▁is"
    assert words(placed("▁the ▁meeting ▁over .", [0.8, 0.85, 0.5, 0.1])) == "▁sum mit ."
    assert words(placed('" ▁meeting "', [0.6, 0.8, 0.2])) == '" ▁sum mit "'
    assert words(placed("▁is ▁ mit", [0.1, 0.1, 0.8])) == "▁is ▁sum mit"
    assert words(placed("会 议 ▁is", [0.8, 0.1, 0.1])) == "▁sum mit 议 ▁is"


def test_within_a_text_without_spaces_a_term_is_spelled_as_it_follows_another():
    terms = (((5, 6), (12,)),)
    assert words(placed("会 议 会", [0.8, 0.1, 0.1], terms=terms)) == "▁sum mit 议 会"
    assert words(placed("会 议 会", [0.1, 0.8, 0.1], terms=terms)) == "会 峰 会"


def test_what_looks_at_the_language_it_is_to_speak_is_not_lost():
    weights = np.array([[0.1, 0.8, 0.1], [0.7, 0.25, 0.05]], dtype=np.float32)
    sentence = Sentence((9, 1, 2), (), (SUMMIT,), ((Place((1,)),),))
    assert words(in_place(sentence, (1, 3), weights, PIECES, silent={9})) == "▁sum mit"
    assert words(in_place(sentence, (1, 3), weights, PIECES)) == "▁sum mit ▁over"


def test_a_term_has_a_space_before_it_where_the_word_had_one():
    terms = (((5, 6), (12,)),)
    assert words(placed("会 ▁meeting 会", [0.1, 0.8, 0.1], terms=terms)) == "会 ▁sum mit 会"


def test_a_letter_in_bytes_goes_as_a_whole():
    terms = (((12,),),)
    assert words(placed("会 <0xE5> <0xB3> 会", [0.1, 0.2, 0.8, 0.1], terms=terms)) == "会 峰 会"


def test_a_word_that_stands_there_twice_is_called_so_twice():
    weights = np.array([[0.9, 0, 0, 0.1], [0, 0.9, 0, 0.1], [0, 0, 0.9, 0.1]], dtype=np.float32)
    sentence = Sentence((1, 2, 1, 3), (), (SUMMIT,), ((Place((0,)), Place((2,))),))
    assert words(in_place(sentence, (1, 2, 1), weights, PIECES)) == "▁sum mit ▁is ▁sum mit"


@pytest.mark.parametrize(
    "more",
    [
        {"shares": [0.4, 0.4, 0.1, 0.1, 0.1]},  # nobody is sure
        {"prefix": (0, 1)},  # it has to begin otherwise
        {"terms": (SUMMIT, ((7, 8),))},  # both want the same place
        {"places": ((),)},  # nobody knows where its word stands
    ],
)
def test_where_it_is_not_clear_nothing_is_placed(more):
    more = {"shares": [0.1, 0.8, 0.1, 0.1, 0.1], **more}
    assert placed("▁the ▁meeting ▁is ▁over .", **more) is None


def test_what_is_said_anyway_stays_as_it_is():
    assert words(placed("▁the ▁sum mit ▁is", [0.1, 0.2, 0.2, 0.8])) == "▁the ▁sum mit ▁is"


@given(data=st.data())
def test_whatever_the_weights_are_terms_are_said_or_nothing_is_placed(data):
    ids = tuple(data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=6)))
    shares = st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4)
    weights = np.array([data.draw(shares) for _ in range(len(ids) + 1)], dtype=np.float32)
    spelling = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(tuple)
    terms = tuple(
        data.draw(st.lists(st.lists(spelling, min_size=1, max_size=2).map(tuple), max_size=2))
    )
    sentence = Sentence((1, 2, 3, 4), (), terms, tuple((Place((n,)),) for n in range(len(terms))))
    found = in_place(sentence, ids, weights, PIECES)
    assert found is None or not lacking(found, terms)


@pytest.fixture(scope="module")
def translator():
    return load("tests/models/tatoeba-zh-en", engine="torch")


@pytest.mark.parametrize("beam", [1, 4])
def test_the_rest_of_a_sentence_stays_as_it_was(translator, beam):
    text, terms = "我喜欢吃苹果。", {"苹果": "pears"}
    free = translator.translate(text, beam=beam).text
    asked = translator.translate(text, beam=beam, terms=terms)
    assert "apples" in free
    assert asked.text == free.replace("apples", "pears")
    [scored] = translator.score([text], [asked.text])
    assert asked.score == pytest.approx(sum(scored.log_probs) / len(scored.log_probs), abs=1e-4)
    several = translator.translate(text, nbest=5, terms=terms).alternatives
    assert len({one.text for one in several}) == 5
    assert [one.score for one in several] == sorted((one.score for one in several), reverse=True)
    assert all("pears" in one.text for one in several)


@pytest.mark.parametrize("bounds", [{"max_len": 6}, {"min_len": 12}])
def test_a_term_in_its_place_keeps_within_the_bounds_of_the_search(translator, bounds):
    terms = {"苹果": "big yellow juicy fruit from far away lands", "喜欢": "it"}
    for word, term in terms.items():
        search = Search(beam=2, **bounds)
        asked = translator.wording.asked(["我喜欢吃苹果。"], [("", "")], terms={word: term})
        [[one]] = translator._torch.search(sentences_of(asked), search)
        assert search.min_len <= len(one.ids)
        assert len(one.ids) + one.is_finished <= (search.max_len or 99)


def test_of_words_that_look_at_a_piece_of_several_words_those_go_whose_turn_it_is():
    said, shares = "▁the ▁meeting ▁is ▁over", [0.7, 0.8, 0.75, 0.1]
    for place, expected in (
        (Place((0,), 0.0, 0.3), "▁sum mit ▁meeting ▁is ▁over"),
        (Place((0,), 0.3, 0.7), "▁the ▁sum mit ▁is ▁over"),
        (Place((0,), 0.7, 1.0), "▁the ▁meeting ▁sum mit ▁over"),
        (Place((0,), 0.9, 1.0), "▁the ▁meeting ▁sum mit ▁over"),
        (Place((0,), 0.3, 1.0), "▁the ▁sum mit ▁over"),
    ):
        assert words(placed(said, shares, places=((place,),))) == expected


def test_a_word_that_is_half_a_piece_takes_the_place_of_half_of_what_looks_at_it(translator):
    assert "▁我们应该" in translator.wording.src.vocab.pieces
    said = {
        word: translator.translate("我们应该学习英语。", beam=1, terms={word: term}).text
        for word, term in {"我们": "you", "应该": "must"}.items()
    }
    assert said == {"我们": "you should study English.", "应该": "We must study English."}


def test_where_words_begin_is_known_of_pieces_with_spaces_alone(tmp_path, translator):
    assert translator._torch.pieces
    texts = ["the meeting is over", "the summit is over"]
    words = [train_tokenizer(texts, kind="word", size=300) for _ in range(2)]
    config = ModelConfig(d_model=8, n_heads=2, n_layers=1, d_ff=8)
    network = build_model(config, *(len(one.vocab) for one in words))
    weights = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    save = lambda file: save_file(weights, file)  # noqa: E731
    write_bundle(tmp_path / "words", config, tuple(words), save, facts={}, card="")
    assert not load(tmp_path / "words", engine="torch")._torch.pieces


def test_places_are_those_of_the_words_whatever_stands_before_them(translator):
    [asked] = translator.wording.asked(["他说苹果，苹果！"], [("", "")], terms={"苹果": "pears"})
    [sentence] = asked.sentences
    [times] = sentence.places
    src = translator.wording.src
    assert len(times) == 2
    assert all("苹果" in src.decode([sentence.ids[n] for n in one.tokens]) for one in times)


def test_rules_that_a_term_in_its_place_could_break_are_left_to_the_search(translator, monkeypatch):
    placed = []
    monkeypatch.setattr("regard.decode.engines.torch.in_place", lambda *_: placed.append(1))
    for search in (
        Search(beam=2, forbidden=((5,),)),
        Search(beam=2, no_repeat=3),
        Search(beam=2, renormalize=True),
        Search(beam=2, coverage_penalty=0.1),
    ):
        said = translator.translate("我喜欢吃苹果。", terms={"苹果": "pears"}, search=search).text
        assert "pears" in said
    assert not placed
