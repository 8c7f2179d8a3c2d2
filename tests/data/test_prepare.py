import re
import resource
import shutil
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard.config import DataConfig
from regard.data.corpus import Pair
from regard.data.prepare import (
    opened,
    prepare,
    read_split,
    split_long,
    training_pairs,
    vocabulary_print,
)
from regard.errors import ConfigError, DataError, ResourceError
from regard.text.normalize import Normalizer
from regard.text.tokenizer import train_tokenizer

ZH = [f"第{i}句话，数字{i * 7}。" for i in range(120)]
EN = [f"Sentence {i}, number {i * 7}." for i in range(120)]


def write(directory, name, zh, en):
    directory.mkdir(exist_ok=True)
    for language, lines in (("zh", zh), ("en", en)):
        (directory / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def corpus(tmp_path):
    write(tmp_path / "a", "train", ZH, EN)
    write(tmp_path / "a", "dev", ZH[:2], EN[:2])
    write(tmp_path / "a", "test", ZH[5:6], EN[5:6])
    write(tmp_path / "b", "train", ["另外一句。", ZH[7]], ["Another one.", EN[7]])
    return tmp_path


def config(corpus, *names, **more):
    settings = {"src_lang": "zh", "tgt_lang": "en", "vocab_size": 400, **more}
    return DataConfig(train=tuple(str(corpus / name) for name in names), **settings)


def test_training_pairs_leave_out_what_the_test_and_dev_sets_hold(corpus):
    dropped = Counter()
    kept = list(training_pairs(config(corpus, "a"), 1, dropped))
    assert len(kept) == 117
    assert dropped == {"drop_overlap": 3}
    assert len(list(training_pairs(config(corpus, "a", drop_overlap=False), 1, Counter()))) == 120


def test_both_directions_double_the_pairs_and_name_their_languages(corpus):
    pairs = list(training_pairs(config(corpus, "b", both_directions=True), 1, Counter()))
    assert [(p.src, p.tgt, p.tgt_lang) for p in pairs[:2]] == [
        ("另外一句。", "Another one.", "en"),
        ("Another one.", "另外一句。", "zh"),
    ]


@pytest.mark.parametrize(
    ("form", "normalizer"),
    [("nfkc", Normalizer(form="nfkc")), ("half", Normalizer(form="nfc", width="half"))],
)
def test_the_form_of_text_is_that_of_the_tokenizers(corpus, tmp_path, form, normalizer):
    made = prepare(config(corpus, "a", form=form), tmp_path / "data")
    assert (made.src_tokenizer.normalizer, made.tgt_tokenizer.normalizer) == (normalizer,) * 2
    assert made.src_tokenizer.encode("Ａ１") == made.src_tokenizer.encode("A1")


def test_several_corpora_are_mixed_by_weight_and_filtered_as_one(corpus):
    dropped = Counter()
    settings = config(corpus, "a", "b", weights=(1.0, 3.0), dedup=True)
    pairs = list(training_pairs(settings, 1, dropped))
    assert sum(pair.corpus == 1 for pair in pairs) <= 2
    assert len({(p.src, p.tgt) for p in pairs}) == len(pairs) == 118
    assert dropped == {"drop_overlap": 3, "dedup": 5}


def test_what_reading_dropped_is_counted_too(corpus):
    write(corpus / "b", "train", ["", "好。"], ["Nothing.", "Good."])
    dropped = Counter()
    assert len(list(training_pairs(config(corpus, "b"), 1, dropped))) == 1
    assert dropped == {"empty-source": 1}


def test_a_dataset_is_built_once_and_again_only_when_something_changed(corpus, tmp_path):
    settings, calls = config(corpus, "a"), []
    first = prepare(settings, tmp_path / "run", progress=calls.append)
    assert (len(first.dataset), len(first.dev)) == (117, 2)
    assert first.dataset.dropped == {"drop_overlap": 3}
    assert calls
    calls.clear()
    again = prepare(settings, tmp_path / "run", progress=calls.append)
    assert not calls
    assert again.dataset.dropped == {"drop_overlap": 3}
    assert again.dataset.src[3].tolist() == first.dataset.src[3].tolist()
    write(corpus / "a", "train", ZH[:50], EN[:50])
    assert len(prepare(settings, tmp_path / "run", progress=calls.append).dataset) == 47
    assert calls


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def flipped(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


def replaced(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [cut, flipped, replaced, Path.unlink, lambda path: path.write_text("{}")]
)
@pytest.mark.parametrize("name", ["dataset.json", "lines.npy", "src.ends.npy", "tgt.ids"])
def test_a_dataset_is_built_again_whatever_of_it_is_spoilt(corpus, tmp_path, name, spoil):
    ids = prepare(config(corpus, "b"), tmp_path).dataset.src[1].tolist()
    spoil(tmp_path / "dataset" / name)
    calls = []
    again = prepare(config(corpus, "b"), tmp_path, progress=calls.append).dataset
    assert calls
    assert again.src[1].tolist() == ids


def test_a_changed_test_set_is_a_changed_dataset(corpus, tmp_path):
    settings = config(corpus, "a")
    assert len(prepare(settings, tmp_path / "run").dataset) == 117
    write(corpus / "a", "test", ZH[5:9], EN[5:9])
    assert len(prepare(settings, tmp_path / "run").dataset) == 114


@pytest.mark.parametrize("place", ["a", "a/train"])
def test_held_out_sets_of_other_names_are_held_out_too(corpus, place):
    write(corpus / "a", "val", ZH[20:22], EN[20:22])
    write(corpus / "a", "test_2016", ZH[30:31], EN[30:31])
    dropped = Counter()
    list(training_pairs(config(corpus, place), 1, dropped))
    assert dropped == {"drop_overlap": 6}


@pytest.mark.parametrize("drop_overlap", [True, False])
def test_pairs_chosen_to_judge_by_are_counted_apart_from_what_a_test_set_holds(
    corpus, drop_overlap
):
    (corpus / "a" / "dev.zh").unlink()
    (corpus / "a" / "dev.en").unlink()
    settings, dropped = config(corpus, "a", drop_overlap=drop_overlap), Counter()
    chosen = {(pair.src, pair.tgt) for pair in read_split(settings, "dev", 1)}
    assert chosen
    assert (ZH[5], EN[5]) not in chosen
    kept = list(training_pairs(settings, 1, dropped))
    assert not chosen & {(pair.src, pair.tgt) for pair in kept}
    n_overlap = list(zip(ZH, EN, strict=True)).count((ZH[5], EN[5]))
    assert dropped == {"drop_overlap": n_overlap, "held_out": 120 - len(kept) - n_overlap}
    assert dropped["held_out"] >= len(chosen)


def test_a_file_that_is_not_the_recipes_is_refused(corpus, tmp_path):
    path = str(corpus / "a" / "train.zh")
    settings = config(corpus, "a", source={path: {"sha256": "0f"}})
    with pytest.raises(DataError, match=r"is not the file that the recipe means: its sha256 is "):
        prepare(settings, tmp_path / "run")


def test_one_vocabulary_serves_both_sides_or_each_has_its_own(corpus, tmp_path):
    joint = prepare(config(corpus, "a"), tmp_path / "joint")
    assert joint.src_tokenizer.vocab == joint.tgt_tokenizer.vocab
    own = prepare(config(corpus, "a", joint=False), tmp_path / "own")
    assert own.src_tokenizer.vocab != own.tgt_tokenizer.vocab


def test_a_model_of_two_directions_has_a_token_for_each_language(corpus, tmp_path):
    prepared = prepare(config(corpus, "a", both_directions=True), tmp_path / "run")
    assert set(prepared.src_tokenizer.vocab.languages) == {"zh", "en"}
    assert set(prepared.dataset.languages) == {"zh", "en"}
    assert len(prepared.dev) == 4


def test_given_tokenizers_are_kept(corpus, tmp_path):
    own = train_tokenizer(ZH + EN, kind="char", size=500)
    prepared = prepare(config(corpus, "a"), tmp_path / "run", tokenizers=(own, own))
    assert prepared.src_tokenizer is own
    assert prepared.dataset.src[0].tolist() == own.encode(prepared.dataset.src.sentence(0))


def test_a_generated_task_needs_no_files(tmp_path):
    settings = DataConfig(task="numerals", task_pairs=300, vocab_size=300, tokenizer="char")
    prepared = prepare(settings, tmp_path / "run")
    assert len(prepared.dataset) == 300
    held_out = {pair.src for pair in read_split(settings, "test", 1)}
    fractions = {src for src in held_out if "分之" in src}
    trained = {prepared.dataset.src.sentence(i) for i in range(300)}
    assert not (held_out - fractions) & trained


def test_long_pairs_are_split_where_both_sides_have_as_many_sentences():
    tokenizer = train_tokenizer(ZH + EN, kind="char", size=500)
    two = Pair("第一句。第二句。", "The first one. The second one.", 1)
    uneven = Pair("只有一句。", "But here are two. As one can see.", 2)
    short = Pair("短。", "Short.", 3)
    parts = list(split_long([two, uneven, short], tokenizer, tokenizer, max_len=20))
    assert [(p.src, p.tgt, p.line) for p in parts] == [
        ("第一句。", "The first one.", 1),
        ("第二句。", "The second one.", 1),
        (uneven.src, uneven.tgt, 2),
        (short.src, short.tgt, 3),
    ]


def test_nothing_to_train_on_is_said(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"^there is nothing to train on; give --src and --tgt, or set data\.train or "
        r"data\.task$",
    ):
        prepare(DataConfig(), tmp_path)


def test_a_missing_corpus_is_named_with_what_the_recipe_knows_of_it(tmp_path):
    place = str(tmp_path / "europarl")
    source = {place: {"address": "https://example.org/europarl", "licence": "free", "sha256": "0f"}}
    with pytest.raises(DataError, match=r"example\.org/europarl.*0f.*free"):
        prepare(DataConfig(train=(place,), source=source), tmp_path / "run")


def test_a_vocabulary_that_is_kept_outlives_another_text(corpus, tmp_path):
    place = tmp_path / "data"
    first = prepare(config(corpus, "a"), place)
    print_of = vocabulary_print(place)
    kept = prepare(config(corpus, "b", vocab_size=300), place, vocabulary=print_of)
    assert kept.src_tokenizer.vocab == first.src_tokenizer.vocab
    assert (len(kept.dataset), vocabulary_print(place)) == (2, print_of)
    other = prepare(config(corpus, "b", vocab_size=300), place)
    assert other.src_tokenizer.vocab != first.src_tokenizer.vocab
    assert vocabulary_print(place) != print_of


def test_a_vocabulary_that_was_lost_is_made_again_and_no_other_is_put_in_its_place(
    corpus, tmp_path
):
    place, folder = tmp_path / "data", tmp_path / "data" / "src_tokenizer"
    first = prepare(config(corpus, "a"), place)
    print_of = vocabulary_print(place)
    (folder / "tokenizer.model").write_bytes(b"damaged")
    (folder / ".stray").write_text("left by a file browser")
    again = prepare(config(corpus, "a"), place, vocabulary=print_of)
    assert (again.src_tokenizer.vocab, vocabulary_print(place)) == (
        first.src_tokenizer.vocab,
        print_of,
    )

    shutil.rmtree(place)
    sentence = (
        f"the vocabulary that the weights belong to is lost from {place}, and what the settings "
        "make is another; resume with what the run began with, --from too if it began with a model"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        prepare(config(corpus, "b"), place, vocabulary=print_of)
    assert not place.exists()
    given = first.src_tokenizer, first.tgt_tokenizer
    prepare(config(corpus, "b"), place, vocabulary=print_of, tokenizers=given)
    assert vocabulary_print(place) == print_of


def test_what_another_process_prepared_is_opened_and_nothing_is_written(corpus, tmp_path):
    place, settings = tmp_path / "data", config(corpus, "a")
    made = prepare(settings, place)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    found = opened(settings, place)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    assert (found.dev, found.directions) == (made.dev, made.directions)
    assert found.src_tokenizer.vocab == made.src_tokenizer.vocab
    assert len(found.dataset) == len(made.dataset) == 117
    with pytest.raises(DataError):
        opened(config(corpus, "b"), place)


def test_what_a_kill_left_half_replaced_is_no_vocabulary_of_any_text(corpus, tmp_path, monkeypatch):
    place, own = tmp_path / "data", config(corpus, "a", joint=False)
    whole = prepare(own, place)
    save = type(whole.src_tokenizer).save

    def killed(self, folder):
        save(self, folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(whole.src_tokenizer), "save", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare(config(corpus, "b", joint=False, vocab_size=300), place)
    monkeypatch.undo()
    again = prepare(own, place)
    assert again.src_tokenizer.vocab == whole.src_tokenizer.vocab
    assert again.dataset.src[3].tolist() == whole.dataset.src[3].tolist()


def test_a_spoilt_note_of_what_a_vocabulary_was_made_of_is_like_none(corpus, tmp_path):
    whole = prepare(config(corpus, "a"), tmp_path)
    (tmp_path / "src_tokenizer" / "made_of").write_bytes(b"\xff\xff")
    again = prepare(config(corpus, "a"), tmp_path)
    assert again.src_tokenizer.vocab == whole.src_tokenizer.vocab


@contextmanager
def no_file_above(n_bytes):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refuses_to_write(folder, reason):
    sentence = (
        f"what is prepared for training cannot be written to {folder}: {reason}; free some space "
        "there, or name another place with -o"
    )
    return pytest.raises(ResourceError, match=f"^{re.escape(sentence)}$")


def test_a_disk_that_is_full_is_named_with_what_would_help(corpus, tmp_path):
    place = tmp_path / "data"
    with refuses_to_write(place, "File too large"), no_file_above(100):
        prepare(config(corpus, "a"), place)
    assert prepare(config(corpus, "a"), place).dataset


def test_a_writer_that_says_only_how_much_it_wrote_is_told_likewise(corpus, tmp_path, monkeypatch):
    def save(path, array):
        raise OSError("9 requested and 0 written")

    monkeypatch.setattr("regard.data.dataset.np.save", save)
    with refuses_to_write(tmp_path / "data", "9 requested and 0 written"):
        prepare(config(corpus, "a"), tmp_path / "data")


@pytest.mark.parametrize("error", [PermissionError(13, "denied", "a.zh"), BrokenPipeError(32, "x")])
def test_what_has_nothing_to_do_with_a_full_disk_is_not_told_as_one(corpus, tmp_path, error):
    def progress(n_pairs):
        raise error

    with pytest.raises(type(error)):
        prepare(config(corpus, "a"), tmp_path / "data", progress=progress)


def test_both_directions_need_a_vocabulary_that_can_be_asked_for_them(corpus, tmp_path):
    one_way = prepare(config(corpus, "a"), tmp_path / "one")
    given = one_way.src_tokenizer, one_way.tgt_tokenizer
    with pytest.raises(
        ConfigError,
        match=r"^data\.both_directions = true, but the vocabulary has no token that asks for "
        r"zh, en; a model learns both directions from its beginning or not at all$",
    ):
        prepare(config(corpus, "a", both_directions=True), tmp_path / "two", tokenizers=given)
