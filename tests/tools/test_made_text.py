"""The texts that recipes train on and that are made of others: what is held out stays out."""

import gzip
import importlib.util
import random
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def module(monkeypatch, name):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, found)
    spec.loader.exec_module(found)
    return found


def read(file):
    return gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]


def run(monkeypatch, name, place):
    made = module(monkeypatch, name)
    monkeypatch.setattr("sys.argv", [f"{name}.py", str(place)])
    return made


def test_no_side_of_a_held_out_french_pair_stands_in_training(tmp_path, monkeypatch):
    made = run(monkeypatch, "make_french", tmp_path)
    monkeypatch.setattr(made, "DEV_PAIRS", 30)
    monkeypatch.setattr(made, "TEST_PAIRS", 60)
    drawn = random.Random(7)  # many sources with several targets, and targets with several sources
    pairs = [(f"Say {drawn.randrange(300)}!", f"Dis {drawn.randrange(300)} !") for _ in range(900)]
    pairs[5:5] = [("Go.", "Va !"), ("go", "Va!")]
    (tmp_path / "tatoeba-fra").mkdir()
    text = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
    (tmp_path / "tatoeba-fra" / "fra.tsv.gz").write_bytes(gzip.compress(text.encode()))
    made.main()
    sides = {
        (split, lang): [
            made.bare(line) for line in read(tmp_path / "fra-split" / f"{split}.{lang}.gz")
        ]
        for split in ("train", "dev", "test")
        for lang in ("en", "fr")
    }
    assert (len(sides["dev", "en"]), len(sides["test", "en"])) == (30, 60)
    assert len(sides["train", "en"]) > 100
    for lang in ("en", "fr"):
        splits = [set(sides[split, lang]) for split in ("train", "dev", "test")]
        assert sum(map(len, splits)) == len(set.union(*splits))
    assert len(read(tmp_path / "d2l-fra-toy" / "train.en.gz")) == 600


@pytest.mark.parametrize(("text", "prepared"), [
    ("Go.", "go ."),
    ("Va\u202f!", "va !"),
    ("Ça alors\u00a0!", "ça alors !"),
    ("Va, maintenant.", "va , maintenant ."),
    ("I'm 19.", "i'm 19 ."),
])  # fmt: skip
def test_french_is_prepared_as_d2l_does(monkeypatch, text, prepared):
    assert module(monkeypatch, "make_french").as_d2l(text) == prepared


@pytest.mark.parametrize(("said", "wanted", "score"), [
    ("va !", "va !", 1.0),
    ("il est mouillé .", "il est calme .", (3 / 4) ** 0.5 * (1 / 3) ** 0.25),
    ("il est .", "il est calme .", 2.718281828459045 ** (1 - 4 / 3) * (1 / 2) ** 0.25),
    ("", "va !", 0.0),
])  # fmt: skip
def test_four_sentences_are_scored_by_the_formula_of_d2l(monkeypatch, said, wanted, score):
    module(monkeypatch, "make_french")
    found = module(monkeypatch, "bench_d2l_toy").bleu_of_d2l(said, wanted)
    assert found == pytest.approx(score)


def test_bare_sentences_come_from_their_own_splits(tmp_path, monkeypatch):
    made = run(monkeypatch, "make_restored", tmp_path)
    for corpus in made.CORPORA:
        (tmp_path / corpus).mkdir()
        for split in made.SPLITS:
            lines = [
                f"Volumes of {corpus} {split}",
                f"A volume, in {split} of {corpus}, keeps what pods write.",
                "It goes when the pod goes.",
                "Run spam(1) in the shell now and see.",
            ]
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / corpus / f"{split}.en.gz").write_bytes(gzip.compress(text.encode()))
    made.main()
    written = read(tmp_path / "restored" / "dev.en-written.gz")
    assert f"A volume, in dev of {made.CORPORA[0]}, keeps what pods write." in written
    assert not any("spam" in line or "Volumes" in line for line in written)
    bare = read(tmp_path / "restored" / "dev.en-bare.gz")
    assert bare[written.index("It goes when the pod goes.")] == "it goes when the pod goes"


def test_terms_are_what_stands_together_in_both_languages(tmp_path, monkeypatch):
    """Not a name, not a piece of a sentence; and d2l's own list has the last word."""
    made = run(monkeypatch, "make_terms", tmp_path)
    lines = [
        ("机器学习很有用", "We think machine learning is useful."),
        ("他学机器学习", "He studies machine learning."),
        ("机器学习和图", "A graph of machine learning."),
        ("看机器学习", "See machine learning here."),
        ("机器学习难", "So machine learning is hard."),
        *[("汤姆用鞍点", "Tom has a saddle point.")] * 5,
        *[("天气好", "What weather!")] * 4,
    ]
    for corpus in made.CORPORA:
        (tmp_path / corpus).mkdir()
        for side, texts in zip(("zh", "en"), zip(*lines, strict=True), strict=True):
            text = "".join(f"{line}\n" for line in texts)
            (tmp_path / corpus / f"train.{side}.gz").write_bytes(gzip.compress(text.encode()))
    listed = "saddle point\t鞍点\ninstance\t实例/示例\n"
    (tmp_path / made.LIST).write_bytes(gzip.compress(listed.encode()))
    made.main()
    found = dict(
        zip(*(read(tmp_path / "terms" / f"train.{s}.gz") for s in ("en", "zh")), strict=True)
    )
    assert found["machine learning"] == "机器学习"
    assert found["saddle point"] == "鞍点"
    assert not {"tom", "we think", "of machine learning", "weather", "instance"} & found.keys()
