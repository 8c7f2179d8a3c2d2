import pickle
import random
import re
from itertools import islice

import pytest
import torch

from regard.attention import Packed
from regard.data.corpus import Pair
from regard.data.dataset import build_dataset
from regard.data.feed import Batches, Place
from regard.errors import ConfigError, DataError
from regard.text.tokenizer import train_tokenizer

RULE = "there is at least 1 token, and ranks count from 0"


def corpus(n=300, languages=("en",)):
    """Words of a few letters that many segmentations can make."""
    chance = random.Random(0)

    def sentence():
        lengths = chance.choices(range(2, 6), k=chance.randint(1, 9))
        return " ".join("".join(chance.choices("abcd", k=n)) for n in lengths)

    for line in range(1, n + 1):
        src, tgt = sentence(), sentence()
        yield Pair(src, tgt, line, tgt_lang=languages[line % len(languages)])


@pytest.fixture(scope="module")
def tokenizer():
    texts = [text for pair in corpus() for text in (pair.src, pair.tgt)]
    return train_tokenizer(texts, kind="unigram", size=340, languages=("en", "zh"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, tokenizer):
    directory = tmp_path_factory.mktemp("data") / "set"
    pairs = corpus(languages=("en", "zh"))
    return build_dataset(directory, pairs, tokenizer, tokenizer, fingerprint="", max_len=200)


def batches(dataset, tokenizer, **more):
    settings = {"kind": "packed", "tokens": 512, "seed": 5, **more}
    return Batches(dataset, tokenizer, tokenizer, **settings)


def ids(batch):
    return batch.src_ids.tolist(), batch.tgt_ids.tolist(), batch.labels.tolist(), batch.pairs


@pytest.mark.parametrize("kind", ["packed", "padded"])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_stopped_run_goes_on_with_the_very_next_batch(
    dataset, tokenizer, kind, sampled, workers, ranks
):
    stopped_after = 7 if kind == "packed" else 11
    feed = batches(dataset, tokenizer, kind=kind, sampled=sampled, rank=ranks - 1, ranks=ranks)
    whole = list(islice(feed.after(Place()), stopped_after + 12))
    place, _ = whole[stopped_after - 1]
    again = batches(dataset, tokenizer, kind=kind, sampled=sampled, rank=ranks - 1, ranks=ranks)
    rest = list(islice(again.after(place, workers=workers), 12))
    assert [place for place, _ in rest] == [place for place, _ in whole[stopped_after:]]
    assert [ids(batch) for _, batch in rest] == [ids(batch) for _, batch in whole[stopped_after:]]


@pytest.mark.parametrize("kind", ["packed", "padded"])
def test_ranks_share_an_epoch_without_overlap_and_with_equal_steps(dataset, tokenizer, kind):
    feeds = [batches(dataset, tokenizer, kind=kind, rank=rank, ranks=3) for rank in range(3)]
    steps = {feed.steps(4) for feed in feeds}
    assert len(steps) == 1
    seen = [
        pair
        for feed in feeds
        for step in range(feed.steps(4))
        for pair in feed.batch(Place(4, step)).pairs
    ]
    assert sorted(seen) == list(range(len(dataset)))


def test_packed_batches_have_one_shape_for_ever_sampled_or_not(dataset, tokenizer):
    for sampled in (False, True):
        feed = batches(dataset, tokenizer, sampled=sampled)
        shapes = {
            (batch.src_ids.shape, batch.tgt_ids.shape, batch.src.offsets.shape, batch.src.max_len)
            for _, batch in islice(feed.after(Place()), 3 * feed.steps(0))
        }
        assert len(shapes) == 1
        assert isinstance(feed.batch(Place()).src, Packed)


def test_a_batch_holds_its_pairs_behind_the_token_of_their_language(dataset, tokenizer):
    batch = batches(dataset, tokenizer, kind="padded").batch(Place())
    for row, n, labels, m, pair in zip(
        batch.src_ids, batch.src.lens, batch.labels, batch.tgt.lens, batch.pairs, strict=True
    ):
        assert row[0] == tokenizer.vocab.language(dataset.language(pair))
        assert row[n - 1] == tokenizer.vocab.eos
        assert row[1 : n - 1].tolist() == dataset.src[pair].tolist()
        assert labels[: m - 1].tolist() == dataset.tgt[pair].tolist()


def test_sampled_segmentations_differ_between_epochs_and_say_the_same(dataset, tokenizer):
    feed = batches(dataset, tokenizer, kind="padded", sampled=True)

    def segmentations(epoch):
        found = {}
        for step in range(feed.steps(epoch)):
            batch = feed.batch(Place(epoch, step))
            for row, n, pair in zip(batch.labels, batch.tgt.lens, batch.pairs, strict=True):
                found[pair] = row[:n].tolist()
        return found

    first, second = segmentations(0), segmentations(1)
    assert sum(first[pair] != second[pair] for pair in first) > len(first) / 2
    for pair in first:
        assert tokenizer.decode(first[pair]) == dataset.tgt.sentence(pair)


def test_no_pair_is_lost_when_sampling_makes_sentences_longer(dataset, tokenizer):
    feed = batches(dataset, tokenizer, sampled=True)
    seen = [p for step in range(feed.steps(2)) for p in feed.batch(Place(2, step)).pairs]
    assert sorted(seen) == list(range(len(dataset)))


@pytest.mark.parametrize("kind", ["packed", "padded"])
def test_sampling_makes_no_sentence_longer_than_the_network_has_places(dataset, tokenizer, kind):
    longest = 1 + 1 + int(max(*dataset.src.lens, *dataset.tgt.lens))  # a language and an end
    free = batches(dataset, tokenizer, sampled=True, kind=kind)
    assert max(n for b in all_of(free) for n in (*b.src.lens, *b.tgt.lens)) > longest
    feed = batches(dataset, tokenizer, sampled=True, kind=kind, max_len=longest)
    assert max(n for b in all_of(feed) for n in (*b.src.lens, *b.tgt.lens)) <= longest
    assert sorted(p for b in all_of(feed) for p in b.pairs) == list(range(len(dataset)))


def all_of(feed):
    return [feed.batch(Place(1, step)) for step in range(feed.steps(1))]


def test_sampled_rows_of_short_sentences_are_full(tmp_path, tokenizer):
    """One long sentence among many short ones: what is planned must be what comes."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcd", k=chance.randint(2, 5))) for _ in range(50)]
    pairs = [
        Pair(chance.choice(words), chance.choice(words), n, tgt_lang="en") for n in range(1, 2000)
    ]
    pairs.append(Pair(" ".join(words), " ".join(words), 2000, tgt_lang="en"))
    folder = tmp_path / "set"
    short = build_dataset(folder, pairs, tokenizer, tokenizer, fingerprint="", max_len=400)
    feed = batches(short, tokenizer, sampled=True, tokens=4096)
    waste = [
        (batch.labels == tokenizer.vocab.pad).float().mean()
        for _, batch in islice(feed.after(Place()), 2 * feed.steps(0))
    ]
    assert sum(waste) / len(waste) < 0.10


def test_a_dataset_without_pairs_is_refused(tmp_path, tokenizer):
    empty = build_dataset(tmp_path / "set", [], tokenizer, tokenizer, fingerprint="", max_len=9)
    with pytest.raises(
        DataError, match=r"^the dataset has no pairs, so there is nothing to train on$"
    ):
        batches(empty, tokenizer)


def test_every_batch_can_be_given_to_a_network(dataset, tokenizer):
    from regard.config import ModelConfig
    from regard.model import build_model

    small = ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16, dropout=0.0)
    model = build_model(small, len(tokenizer.vocab), len(tokenizer.vocab)).eval()
    packed, padded = (
        batches(dataset, tokenizer, kind=kind).batch(Place()) for kind in ("packed", "padded")
    )
    for batch in (packed, padded):
        logits = model(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        assert torch.isfinite(logits).all()


def test_the_feed_crosses_process_borders_after_use(dataset, tokenizer):
    feed = batches(dataset, tokenizer)
    before = ids(feed.batch(Place()))
    assert ids(pickle.loads(pickle.dumps(feed)).batch(Place())) == before


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "paded"}, 'batching = "paded" is not one of packed, padded'),
        ({"tokens": 0}, f"tokens = 0, rank = 0 of 1: {RULE}"),
        ({"rank": 2, "ranks": 2}, f"tokens = 512, rank = 2 of 2: {RULE}"),
    ],
)
def test_settings_that_cannot_be_are_refused(dataset, tokenizer, settings, sentence):
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        batches(dataset, tokenizer, **settings)
