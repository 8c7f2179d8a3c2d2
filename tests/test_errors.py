import ast
import pickle
import string
import tomllib
from pathlib import Path

import pytest

import regard
from regard.errors import ConfigError, DataError, ModelError, RegardError, ResourceError, Word

SOURCE = Path(regard.__file__).parent
KINDS = {"ConfigError", "DataError", "ModelError", "ResourceError"}


def sentences():
    """Every sentence that the source gives to an error."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
                assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno}"
                yield node.args[0].value, {keyword.arg for keyword in node.keywords}


def chinese():
    return toml()["sentences"]


def toml():
    return tomllib.loads((SOURCE / "errors.zh.toml").read_text(encoding="utf-8"))


def fields(sentence):
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_every_sentence_has_its_chinese_and_no_chinese_is_left_over():
    assert {sentence for sentence, _ in sentences()} == set(chinese())


def test_sentences_use_exactly_the_values_they_are_given_in_both_languages():
    for sentence, values in sentences():
        assert fields(sentence) == values == fields(chinese()[sentence]), sentence


def test_sentences_start_in_lower_case_and_end_without_a_full_stop():
    for sentence, _ in sentences():
        assert not sentence.endswith(".")
        assert sentence[0] == "{" or sentence[0].islower(), sentence


@pytest.mark.parametrize(
    ("kind", "code"), [(ConfigError, 2), (DataError, 3), (ModelError, 4), (ResourceError, 5)]
)
def test_each_kind_has_its_exit_code(kind, code):
    assert kind("there is no file {path}", path="x").exit_code == code


def test_an_error_speaks_both_languages():
    error = ModelError(
        "{name} is {width} wide but must be {expected}", name="x", width=7, expected=8
    )
    assert str(error) == error.in_language("en") == "x is 7 wide but must be 8"
    assert error.in_language("zh") == "x的宽度是7，应为8"


def test_several_faults_are_said_at_once_in_either_language():
    faults = tuple(ConfigError("unknown setting {name}", name=name) for name in "ab")
    error = ConfigError("{faults}", faults=faults)
    assert str(error) == "unknown setting a; unknown setting b"
    assert error.in_language("zh") == "没有a这项设置；没有b这项设置"


def test_words_of_regards_own_are_translated_and_other_values_are_not():
    sentence = "{side} has {n_rows} sentences but {n_lens} lengths"
    own = DataError(sentence, side=Word("source"), n_rows=2, n_lens=1)
    assert str(own) == "source has 2 sentences but 1 lengths"
    assert own.in_language("zh") == "源端有2个句子，却有1个长度"
    others = DataError(sentence, side="source", n_rows=(), n_lens=1)
    assert others.in_language("zh") == "source有()个句子，却有1个长度"


def test_every_word_of_regards_own_has_its_chinese_and_no_chinese_is_left_over():
    words = {"source", "target"}  # the sides, which the checks are given by their callers
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Word":
                words |= {n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)}
    assert words == set(toml()["words"])


def test_an_error_crosses_process_borders():
    error = DataError("there is no file {path}", path="train.zh")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DataError
    assert str(copy) == str(error)
    assert copy.values == {"path": "train.zh"}


def test_a_caller_can_catch_them_together_or_as_pythons_own():
    assert issubclass(ConfigError, RegardError)
    assert issubclass(ModelError, ValueError)
    assert issubclass(ResourceError, RuntimeError)
