import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from typing import get_args

import pytest

from regard.attention.scores import ScoreName
from regard.config import (
    Config,
    DataConfig,
    ModelConfig,
    TrainConfig,
)
from regard.errors import ConfigError
from regard.recipe import config_from_table, read_config
from regard.settings import as_toml


def refuses(sentence):
    return pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$")


def test_the_settings_are_these():
    """Adding one is a decision."""
    assert [f.name for f in fields(Config)] == ["model", "data", "train"]
    assert [f.name for f in fields(TrainConfig)] == [
        "steps",
        "tokens",
        "batching",
        "accumulate",
        "lr",
        "schedule",
        "warmup",
        "label_smoothing",
        "r_drop",
        "clip",
        "seed",
        "precision",
        "compile",
        "parallel",
        "ema",
        "average",
        "average_of",
        "snapshots",
        "metric",
        "patience",
        "validate_every",
        "save_every",
        "log_every",
        "workers",
        "device",
    ]
    assert [f.name for f in fields(DataConfig)] == [
        "task",
        "task_pairs",
        "train",
        "weights",
        "dev",
        "test",
        "src_lang",
        "tgt_lang",
        "both_directions",
        "on_bad",
        "max_ratio",
        "dedup",
        "script",
        "drop_overlap",
        "max_len",
        "long",
        "form",
        "han",
        "tokenizer",
        "vocab_size",
        "joint",
        "sampled",
        "source",
    ]
    assert [f.name for f in fields(ModelConfig)] == [
        "kind",
        "d_model",
        "n_layers",
        "n_heads",
        "d_ff",
        "norm",
        "activation",
        "score",
        "positions",
        "max_len",
        "share",
        "scale_embeddings",
        "output_bias",
        "dropout",
        "attention_dropout",
        "activation_dropout",
    ]


def test_defaults_are_the_papers_base_model():
    model = ModelConfig()
    assert (model.d_model, model.n_layers, model.n_heads, model.d_ff) == (512, 6, 8, 2048)
    assert model.decoder == (6, 8, 2048)
    assert (model.norm, model.activation, model.dropout) == ("post", "relu", 0.1)


def test_one_value_serves_both_sides_unless_the_decoder_has_its_own():
    model = ModelConfig(n_layers=(12, 2), n_heads=4)
    assert (model.encoder, model.decoder) == ((12, 4, 2048), (2, 4, 2048))
    assert replace(ModelConfig(), n_layers=2).decoder == (2, 8, 2048)


def test_a_pair_of_sizes_comes_from_toml_and_from_the_command_line_alike(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("[model]\nn_layers = [12, 2]\n")
    config = read_config(path, ["model.n_heads=[8,4]", "model.d_ff = [2048, 1024]"])
    assert (config.model.encoder, config.model.decoder) == ((12, 8, 2048), (2, 4, 1024))
    assert config_from_table(json.loads(json.dumps(config.as_table()))) == config
    (tmp_path / "again.toml").write_text(as_toml(config.as_table()))
    assert read_config(tmp_path / "again.toml") == config


def test_a_network_in_words_says_where_its_sides_differ():
    assert ModelConfig().in_words == (
        "transformer, 6+6 layers, d 512, 8 heads, d_ff 2048, post-norm, scaled_dot scores"
    )
    assert ModelConfig(n_layers=(12, 2), n_heads=(8, 4), d_ff=(2048, 1024)).in_words == (
        "transformer, 12+2 layers, d 512, 8+4 heads, d_ff 2048+1024, post-norm, scaled_dot scores"
    )


def test_overrides_are_laid_over_the_file_before_anything_is_checked(tmp_path):
    """Checked one by one, 390 against the default of 8 heads and 6 against 512 would clash."""
    path = tmp_path / "small.toml"
    path.write_text("[model]\nd_model = 390\nnorm = 'pre'\n")
    config = read_config(path, ["model.n_heads=6", "model.score=gaussian", "model.dropout=0"])
    assert (config.model.d_model, config.model.n_heads) == (390, 6)
    assert (config.model.norm, config.model.score, config.model.dropout) == ("pre", "gaussian", 0)


def test_a_config_comes_back_from_its_table():
    config = read_config(overrides=["model.n_layers=3", "model.positions=rotary"])
    assert config_from_table(config.as_table()) == config


def test_all_unknown_names_are_said_at_once_with_the_nearest():
    with refuses(
        "unknown setting modle; did you mean model?; "
        "unknown setting model.n_head; did you mean model.n_heads?; "
        "unknown setting model.xyzzy"
    ):
        config_from_table({"modle": {}, "model": {"n_head": 8, "xyzzy": 1}})


def test_what_is_wrong_in_several_sections_is_said_together():
    with refuses(
        "model.dropout = 1.5 is no probability below 1; "
        "unknown setting data.vocab; did you mean data.vocab_size?; "
        "train.steps = 0 must be at least 1; train.clip = -1 must be above 0"
    ):
        config_from_table(
            {
                "model": {"dropout": 1.5},
                "data": {"vocab": 1},
                "train": {"steps": 0, "clip": -1},
            }
        )


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.norm=sandwich", 'model.norm = "sandwich" is not one of post, pre'),
        ("model.d_model=big", 'model.d_model = "big" must be a whole number'),
        ("model.d_model=true", "model.d_model = true must be a whole number"),
        ("model.d_model=1.5", "model.d_model = 1.5 must be a whole number"),
        ("model.dropout=yes", 'model.dropout = "yes" must be a number'),
        ("model.output_bias=1", "model.output_bias = 1 must be true or false"),
        ("model.n_layers=-2", "model.n_layers = -2 must be at least 1"),
        ("model.n_layers=[6, 0]", "model.n_layers[1] = 0 must be at least 1"),
        ("model.d_ff=[-1, 0]",
         "model.d_ff[0] = -1 must be at least 1; model.d_ff[1] = 0 must be at least 1"),
        ("model.n_layers=[6]", "model.n_layers = [6] must be a whole number, or a pair of them, "
         "[encoder, decoder]"),
        ("model.n_heads=[8, 8, 8]", "model.n_heads = [8, 8, 8] must be a whole number, or a pair "
         "of them, [encoder, decoder]"),
        ("model.d_ff=[8, true]", "model.d_ff = [8, true] must be a whole number, or a pair of "
         "them, [encoder, decoder]"),
        ("model.n_layers=six", 'model.n_layers = "six" must be a whole number, or a pair of them, '
         "[encoder, decoder]"),
        ("model.decoder_layers=2", "unknown setting model.decoder_layers; did you mean "
         "model.n_layers?"),
        ("data.max_ratio=nan", "data.max_ratio = nan must be a number"),
        ("model.dropout=1", "model.dropout = 1 is no probability below 1"),
        ("model.attention_dropout=-1", "model.attention_dropout = -1 is no probability below 1"),
        ("model.n_heads=7", "model.d_model = 512 is not a multiple of model.n_heads = 7"),
        ("model.n_heads=[8, 7]", "model.d_model = 512 is not a multiple of model.n_heads[1] = 7"),
        ("train.seed=-1", "train.seed = -1 must be at least 0"),
        (f"train.seed={2**63}", f"train.seed = {2**63} must be at most {2**63 - 1}"),
        (f"model.n_layers=[1, {10**30}]",
         f"model.n_layers = [1, {10**30}] must be at most {2**30}"),
        (f"train.tokens={10**30}", f"train.tokens = {10**30} must be at most {2**30}"),
        ("train.workers=257", "train.workers = 257 must be at most 256"),
        ("n_heads=8", 'override "n_heads=8" is not of the form section.name=value, '
         "such as model.n_layers=3"),
        ("model.n_heads", 'override "model.n_heads" is not of the form section.name=value, '
         "such as model.n_layers=3"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_named_with_its_value(override, sentence):
    with refuses(sentence):
        read_config(overrides=[override])


def test_a_bad_setting_is_named_in_chinese_too():
    with pytest.raises(ConfigError) as caught:
        read_config(overrides=["model.d_model=big"])
    assert caught.value.in_language("zh") == 'model.d_model = "big"应为整数'
    with pytest.raises(ConfigError) as caught:
        read_config(overrides=["model.n_layers=[6]"])
    assert caught.value.in_language("zh") == (
        "model.n_layers = [6]应为整数，或一对整数[编码器, 解码器]"
    )
    with pytest.raises(ConfigError) as caught:
        ModelConfig(n_heads=(8, 7))
    assert caught.value.in_language("zh") == "model.d_model = 512不是model.n_heads[1] = 7的倍数"


def test_rotary_positions_need_heads_of_even_width():
    with refuses(
        'model.positions = "rotary" turns pairs, but model.d_model = 24 over model.n_heads = 8 '
        "gives heads of odd width"
    ):
        ModelConfig(d_model=24, positions="rotary")
    with refuses(
        'model.positions = "rotary" turns pairs, but model.d_model = 24 over model.n_heads[1] = 8 '
        "gives heads of odd width"
    ):
        ModelConfig(d_model=24, n_heads=(4, 8), positions="rotary")


def test_an_odd_width_is_refused_where_pairs_are_needed():
    with refuses(
        "model.d_model = 25 is odd; sines and cosines, and the two directions of a recurrent "
        "encoder, come in pairs"
    ):
        ModelConfig(d_model=25, n_heads=5)
    assert ModelConfig(d_model=25, n_heads=5, positions="learned").d_model == 25


def test_settings_made_in_python_go_through_the_same_door():
    with refuses('model.kind = "recurent" is not one of transformer, recurrent'):
        ModelConfig(kind="recurent")
    with refuses('data.form = "wide" is not one of nfc, half, nfkc, none'):
        DataConfig(form="wide")
    with refuses('train.lr = "fast" must be a number'):
        TrainConfig(lr="fast")


def test_two_directions_need_two_languages():
    sentence = "data.both_directions needs two different languages to tell the directions apart"
    with refuses(sentence):
        DataConfig(task="sort", both_directions=True)
    with refuses(sentence):
        DataConfig(train=("a",), src_lang="zh", tgt_lang="zh", both_directions=True)


def test_a_setting_without_meaning_is_refused():
    with refuses('model.score = "gaussian" has no meaning for model.kind = "recurrent"'):
        ModelConfig(kind="recurrent", score="gaussian")


def test_the_scores_to_choose_from_are_those_of_the_library():
    (score,) = [f.type for f in fields(ModelConfig) if f.name == "score"]
    assert get_args(score) == get_args(ScoreName)


def test_reading_settings_loads_no_torch():
    code = "import sys, regard.config; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_two_vocabularies_do_not_share_one_matrix():
    """Not even where they happen to be of one size, which no shape would tell."""
    with refuses(
        'data.joint = false makes two vocabularies, but model.share = "all" needs one; '
        'set model.share = "target", or keep data.joint = true'
    ):
        read_config(overrides=["data.joint=false"])
    assert not read_config(overrides=["data.joint=false", "model.share=target"]).data.joint


def test_a_corpus_is_read_more_than_never():
    with refuses("data.weights = [1, 0.0] must all be above 0"):
        read_config(overrides=['data.train=["a", "b"]', "data.weights=[1, 0.0]"])


def test_lists_and_sources_come_from_toml(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(
        '[data]\ntrain = ["a", "b"]\nweights = [1, 0.5]\n'
        '[data.source."a/train.zh"]\naddress = "somewhere"\nsha256 = "00"\nlicence = "MIT"\n'
    )
    data = read_config(path).data
    assert (data.train, data.weights) == (("a", "b"), (1, 0.5))
    assert data.source["a/train.zh"]["licence"] == "MIT"
    assert config_from_table(read_config(path).as_table()) == read_config(path)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("data.train=a", 'data.train = "a" must be a list of texts'),
        ("data.weights=[1, true]", "data.weights = [1, true] must be a list of numbers"),
        ("data.weights=[1]", "data.weights has 1 numbers but data.train has 0 corpora"),
        ("data.max_len=0", "data.max_len = 0 must be at least 1"),
        ("train.steps=0", "train.steps = 0 must be at least 1"),
        ("data.max_ratio=0.5", "data.max_ratio = 0.5 would drop every pair; it says how many "
         "times as long one side may be as the other"),
        ("data.source=3", "data.source = 3 must be a table of files, each with address, sha256 "
         "and licence"),
    ],
)  # fmt: skip
def test_a_bad_data_setting_is_named(override, sentence):
    with refuses(sentence):
        read_config(overrides=[override])


def test_a_corpus_that_can_be_read_only_once_is_refused():
    with refuses(
        "data.train reads its corpus more than once, so it cannot be stdin; save it first"
    ):
        DataConfig(train=("-",))


def test_a_task_and_files_cannot_both_be_the_corpus():
    with refuses('data.train is given and so is data.task = "copy"; choose one'):
        DataConfig(task="copy", train=("a",))


def test_a_section_must_be_a_section():
    with refuses("model = 3 must be a section of settings, [model]"):
        config_from_table({"model": 3})


def test_a_missing_or_broken_file_is_named(tmp_path):
    path = tmp_path / "recipe.toml"
    with refuses(f"there is no file {path}"):
        read_config(path)
    path.write_text("[model\n")
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))} is no valid TOML: .*line 1"):
        read_config(path)
    path.write_bytes(b"\xff\xfe")
    advice = "; a recipe is TOML, and text goes by --src and --tgt"
    with pytest.raises(ConfigError, match=f"is no valid TOML: .*{advice}$"):
        read_config(path)
    with refuses(f"{tmp_path} is a directory, but a recipe is a TOML file; name one"):
        read_config(tmp_path)
