import gc
import math
import time
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

from regard.errors import DataError
from regard.text import subword as module
from regard.text.normalize import Normalizer
from regard.text.regularize import chance, drawn_bpe, drawn_unigram, endings
from regard.text.subword import train_subword

TEXTS = ["the cat sat on a mat.", "我们今天去公园看猫，好。", "the hills 12 猫 and 我们。"]


def ordinary(subword, tmp_path):
    """SentencePiece alone, on the file that was saved."""
    subword.save(tmp_path)
    return SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))


def test_the_model_is_an_ordinary_sentencepiece_model(subword, tmp_path):
    processor = ordinary(subword, tmp_path)
    for text in [*TEXTS, "  two  spaces ", "\n", "tab\tnul\0龘"]:
        assert subword.encode(text) == processor.encode(text)
        assert subword.decode(subword.encode(text)) == processor.decode(subword.encode(text))


def test_the_special_ids_are_where_sentencepiece_has_them(subword, tmp_path):
    processor, vocab = ordinary(subword, tmp_path), subword.vocab
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    assert ids == (vocab.pad, vocab.bos, vocab.eos, vocab.unk)
    assert processor.piece_to_id("<2zh>") == vocab.language("zh")
    assert [processor.id_to_piece(id) for id in range(len(vocab))] == list(vocab.pieces)


def test_digits_stand_alone(subword):
    pieces = [piece for piece in subword.pieces("12 345 34512") if piece != "▁"]
    assert "".join(pieces).replace("▁", "") == "1234534512"
    assert all(len(piece.strip("▁")) == 1 for piece in pieces)


def test_sampling_is_a_pure_function_of_text_and_key(subword):
    keys = [(epoch, line) for epoch in range(4) for line in range(4)]
    forwards = {key: subword.sample(TEXTS[0], key) for key in keys}
    backwards = {key: subword.sample(TEXTS[0], key) for key in reversed(keys)}
    assert forwards == backwards


def test_other_keys_and_other_texts_give_other_segmentations(subword):
    samples = {tuple(subword.sample(" ".join(TEXTS), (key,))) for key in range(50)}
    assert len(samples) > 10
    assert chance("a", (1,)).random() != chance("b", (1,)).random() != chance("a", (2,)).random()
    assert chance("a", (1, 2)).random() != chance("a", (12,)).random()


def test_the_likeliest_sample_is_the_plain_encoding(monkeypatch, subword):
    monkeypatch.setattr(module, "ALPHA", 1e4)
    monkeypatch.setattr(module, "DROPOUT", 0.0)
    for text in TEXTS:
        assert subword.sample(text, (1,)) == subword.encode(text)


def segmentations(text, scores, unknown):
    """All of them, each with its score, by recursion."""
    if not text:
        return {(): 0.0}
    found = {}
    for end in range(1, len(text) + 1):
        piece = text[:end]
        if piece in scores or end == 1:
            for rest, score in segmentations(text[end:], scores, unknown).items():
                found[piece, *rest] = scores.get(piece, unknown) + score
    return found


def test_unigram_samples_are_drawn_by_their_probability():
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "abc": -6.0, "ca": -4.0, "bd": -5.0}
    alpha, unknown, n = 0.7, -9.0, 4000
    expected = {
        pieces: math.exp(alpha * score)
        for pieces, score in segmentations("abcabdb", scores, unknown).items()
    }
    total = sum(expected.values())
    drawn = Counter(
        tuple(
            drawn_unigram(
                "abcabdb",
                endings(scores),
                unknown=unknown,
                alpha=alpha,
                random=chance("", (key,)),
            )
        )
        for key in range(n)
    )
    assert drawn.keys() <= expected.keys()
    for pieces, weight in expected.items():
        p = weight / total
        assert abs(drawn[pieces] - n * p) < 5 * math.sqrt(n * p * (1 - p)) + 1


def merged_by_hand(text, scores):
    """BPE by its definition: join the best pair, leftmost first, until there is none."""
    symbols = list(text)
    while pairs := [
        (-scores[a + b], at) for at, (a, b) in enumerate(pairwise(symbols)) if a + b in scores
    ]:
        _, at = min(pairs)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols


@given(st.text("abc", max_size=20))
def test_bpe_without_dropout_is_bpe_by_its_definition(text):
    scores = {
        piece: -float(rank) for rank, piece in enumerate(["ab", "abc", "bc", "aa", "aab", "cab"])
    }
    drawn = drawn_bpe(text, scores, dropout=0.0, random=chance("", ()))
    assert drawn == merged_by_hand(text, scores)


@given(st.text("abc", max_size=20))
def test_bpe_that_drops_every_merge_leaves_the_characters(text):
    assert drawn_bpe(text, {"ab": -1.0}, dropout=1.0, random=chance("", ())) == list(text)


def train(texts, seed_sentences=1000, **changed):
    settings = {"kind": "unigram", "size": 420, "normalizer": Normalizer(), "languages": []}
    return train_subword(texts, seed_sentences=seed_sentences, threads=1, **{**settings, **changed})


def test_long_lines_and_strange_characters_are_not_passed_over_in_training(corpus):
    # Every one of these lines SentencePiece would skip or stop at by itself.
    strange = ["甲" * 20_000 + "乙" * 100, *["丙\0丁", "戊▅己", "庚▁辛\t壬\n癸"] * 100]
    tokenizer = train([*corpus(60), *strange], kind="bpe", size=500)
    assert tokenizer.uncovered("甲乙丙丁戊己庚辛壬癸") == 0
    assert not any(set("\0\t\n▅") & {*piece} for piece in tokenizer.vocab.pieces)


def test_training_draws_lines_evenly_and_alike():
    texts = [chr(0x4E00 + at) * 3 for at in range(2000)]
    a, b = (train(iter(texts), seed_sentences=200, size=600) for _ in range(2))
    assert a.vocab == b.vocab
    kept = [ord(piece) - 0x4E00 for piece in a.vocab.pieces if len(piece) == 1 and piece > "一"]
    assert len(kept) > 150
    assert 800 < sum(kept) / len(kept) < 1200


def test_an_error_of_the_texts_own_comes_through():
    def broken():
        yield "the cat"
        raise DataError("there is no file {path}", path="train.zh")

    with pytest.raises(DataError) as raised:
        train(broken())
    assert str(raised.value) == "there is no file train.zh"


def test_training_is_silent(corpus, capfd):
    train(corpus(60))
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.plain
def test_encoding_costs_little_more_than_sentencepiece_alone(subword, corpus, tmp_path):
    processor = ordinary(subword, tmp_path)
    texts = list(corpus(10_000))

    def seconds(encode):
        start = time.perf_counter()
        encode()
        return time.perf_counter() - start

    def ours():
        subword.encode_all(texts)

    def theirs():
        processor.encode(texts, num_threads=1)  # else it takes every core that happens to be free

    gc.disable()  # as timeit does: it would walk through all that other tests have left
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(7)]
    gc.enable()
    own, alone = map(min, zip(*rounds, strict=True))
    assert own < 1.5 * alone + 0.01


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_every_letter_and_digit_of_an_alphabet_is_a_piece_and_the_rarest_han_is_not(kind):
    letters = ["the quick brown fox jumps over the lazy dog"] * 3000 + ["7 %"]
    tokenizer = trained_on(letters, kind=kind, size=600)
    assert [tokenizer.uncovered(character) for character in "7%"] == [0, 0]
    assert tokenizer.uncovered("é") == 1
    han = ["".join(chr(0x4E00 + (i * j) % 90) for j in range(40)) for i in range(300)] + ["龘"]
    assert trained_on(han, kind=kind, size=600).uncovered("龘") == 1


def trained_on(texts, kind, size):
    return train_subword(
        texts,
        kind=kind,
        size=size,
        normalizer=Normalizer(),
        languages=(),
        seed_sentences=10_000,
        threads=1,
    )
