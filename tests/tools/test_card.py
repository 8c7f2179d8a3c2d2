"""The card of the model that comes with regard."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
import torch

from regard.bundle import open_bundle, write_bundle
from regard.config import ModelConfig
from regard.errors import ModelError
from regard.model.build import build_model
from regard.model.weights import save_tensors, weights_of
from regard.recipe import read_config
from regard.text.tokenizer import train_tokenizer

ROOT = Path(__file__).parents[2]
RESULTS = """# The model that comes with regard, November 2026

`python benchmarks/bench_quality.py`: a stand-in, 1.0 MB; CTranslate2 in int8, beam 5.

## dev

| corpus | zh→en BLEU | zh→en chrF | en→zh BLEU | en→zh chrF |
|---|--:|--:|--:|--:|
| Tatoeba | 31.7 | 51.2 | 33.3 | 30.9 |

- bleu: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`

## test

| corpus | zh→en BLEU | zh→en chrF | en→zh BLEU | en→zh chrF |
|---|--:|--:|--:|--:|
| Tatoeba | 29.4 | 50.1 | 32.1 | 29.5 |

- bleu: `nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:2.6.0`

## Speed

Tatoeba's test sentences: 171 sentences/s (160–180 in 7 rounds).
"""


@pytest.fixture
def card(tmp_path, monkeypatch):
    """The tool, about a network of both directions that has learned nothing."""
    spec = importlib.util.spec_from_file_location("card", ROOT / "tools" / "card.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "MODEL", tmp_path / "model")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.md")
    (tmp_path / "results.md").write_text(RESULTS, encoding="utf-8")
    written(tmp_path / "model", [["zh", "en"], ["en", "zh"]])
    return module


def written(place, directions):
    config = ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16, max_len=64)
    tokenizer = train_tokenizer(["一 a"], kind="char", size=300, languages=["zh", "en"])
    torch.manual_seed(1)
    network = build_model(config, len(tokenizer.vocab), len(tokenizer.vocab))
    facts = {
        "regard": "0.1.0",
        "directions": directions,
        "updates": 16000,
        "target_tokens": 123456789,
        "weights": "update 16000",
    }
    write_bundle(
        place,
        config,
        (tokenizer, tokenizer),
        lambda path: save_tensors(weights_of(network), path),
        facts=facts,
        card="as training wrote it\n",
    )


def run(card, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["card.py", *arguments])
    return card.main()


def test_a_stale_card_is_noticed_written_anew_and_leaves_the_model_whole(
    card, tmp_path, monkeypatch, capsys
):
    assert run(card, monkeypatch) == 1
    assert capsys.readouterr().out == (
        "the bundled model's card is not as its sources are\nrun: python tools/card.py --write\n"
    )
    assert run(card, monkeypatch, "--write") == 0
    assert run(card, monkeypatch) == 0
    assert open_bundle(tmp_path / "model").facts["updates"] == 16000
    (tmp_path / "model" / "README.md").write_text("another", encoding="utf-8")
    with pytest.raises(ModelError, match=r"README\.md"):
        open_bundle(tmp_path / "model")


def test_it_has_every_score_with_its_signature_and_every_licence(card, tmp_path, monkeypatch):
    run(card, monkeypatch, "--write")
    text = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    for told in re.findall(r"\d+\.\d\b|`nrefs.*`|171 sentences/s", RESULTS):
        assert told in text
    source = read_config(ROOT / "recipes" / "zh-en.toml").data.source
    assert len(source) == 7
    for place, known in source.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| [{Path(place).name}]")]
        assert known["licence"] in row
        assert known["address"] in row
        assert card.CORPORA[Path(place).name].by in row
    assert "16,000 updates, 123,456,789 target tokens" in text
    assert "regard train recipes/zh-en.toml -o zh-en" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Chinese and English, both ways 中英互译",
        "## Scores 成绩",
        "### dev",
        "### test",
        "### Speed",
        "## Data, licences, attribution 数据、许可与署名",
        "## Limits 局限",
        "## Train it again 重新训练",
    ]


def test_the_logs_beside_the_results_are_told(card, tmp_path, monkeypatch):
    rows = [
        {"step": 50, "loss": 4.25, "seconds": 90.0, "tokens_per_s": 9},
        {"step": 50, "dev_loss": 3.5, "dev_bleu": 12.34},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "zh-en.metrics.jsonl").write_text(lines, encoding="utf-8")
    tuned = lines.replace("12.34", "23.45")
    (tmp_path / "zh-en-tuned.metrics.jsonl").write_text(tuned, encoding="utf-8")
    run(card, monkeypatch, "--write")
    text = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "Their logs 日志:" in text
    assert "| 1 | 50 | 1.5 | 4.250 | 3.500 | 12.3 |\n" in text
    assert "| 2 | 50 | 1.5 | 4.250 | 3.500 | 23.4 |\n" in text


def test_a_corpus_without_attribution_stops_it(card, monkeypatch):
    monkeypatch.delitem(card.CORPORA, "3am-zh-en")
    with pytest.raises(SystemExit) as stopped:
        run(card, monkeypatch, "--write")
    assert str(stopped.value) == "error: tools/card.py has no attribution for data/3am-zh-en"


def test_without_scores_there_is_no_card(card, tmp_path, monkeypatch, capsys):
    (tmp_path / "results.md").unlink()
    assert run(card, monkeypatch, "--write") == 1
    assert capsys.readouterr().out == (
        "results.md is missing\nrun: python benchmarks/bench_quality.py --write --data DIR\n"
    )


def test_a_model_of_one_direction_keeps_its_own_card(card, tmp_path, monkeypatch):
    written(tmp_path / "numerals", [["zh", "en"]])
    monkeypatch.setattr(card, "MODEL", tmp_path / "numerals")
    assert run(card, monkeypatch, "--write") == 0
    text = (tmp_path / "numerals" / "README.md").read_text(encoding="utf-8")
    assert text == "as training wrote it\n"
