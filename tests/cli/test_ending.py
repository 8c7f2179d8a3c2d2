from pathlib import Path

import pytest

from regard.cli.ending import last_words
from regard.config import DataConfig
from regard.data.prepare import prepare

OUTPUT, FOLDER = Path("a model"), Path("a model.run")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    data = DataConfig(task="copy", task_pairs=9, tokenizer="char", vocab_size=300)
    return prepare(data, tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [(24.4, "24 s", "24秒"), (59.4, "59 s", "59秒"), (59.6, "1.0 min", "1.0分钟"),
     (198.0, "3.3 min", "3.3分钟")],
)  # fmt: skip
def test_a_run_says_how_long_it_took_and_where_its_model_is(prepared, seconds, english, chinese):
    lines = [words.splitlines() for words in last_words(prepared, OUTPUT, FOLDER, seconds)]
    assert [said[0] for said in lines] == [
        f"done in {english}: a model", f"完成，用时{chinese}，模型在a model",
    ]  # fmt: skip


def test_the_sentence_to_try_is_one_to_judge_by_or_else_one_of_those_learned(prepared):
    judged, learned = prepared.dev[0].src, prepared.dataset.src.sentence(0)
    assert judged != learned
    assert "--model 'a model'" in last_words(prepared, OUTPUT, FOLDER, 1.0)[0]
    assert "regard plot 'a model.run'" in last_words(prepared, OUTPUT, FOLDER, 1.0)[0]
    assert f"'{judged}'" in last_words(prepared, OUTPUT, FOLDER, 1.0)[0]
    prepared.dev.clear()
    for words in last_words(prepared, OUTPUT, FOLDER, 1.0):
        assert f"'{learned}'" in words
