import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.bundle import open_bundle
from regard.cli import judge
from regard.cli.main import main
from regard.errors import ModelError
from regard.recipe import config_from_table

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"
SMALL = [
    "data.task=copy", "data.task_pairs=200", "data.tokenizer=char", "data.vocab_size=300",
    "model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.d_ff=16",
    "model.norm=pre", "train.tokens=256", "train.warmup=2", "train.log_every=2",
    "train.validate_every=4", "train.save_every=2",
]  # fmt: skip
BRIEF = (
    "data.task=numerals", "train.schedule=constant", "train.validate_every=8", "train.metric=loss",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_are_judged(monkeypatch):
    """A network that has learned nothing goes on and on, and 500 sentences take it seconds."""
    monkeypatch.setattr(judge, "JUDGED", 40)


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code or 0


def train(output, *more, steps=4, resume=False):
    flags = [
        word for setting in (*SMALL, f"train.steps={steps}", *more) for word in ("--set", setting)
    ]
    return run("train", "-o", output, *flags, *(["--resume"] if resume else []))


def losses(output):
    lines = (output.with_name(output.name + ".run") / "metrics.jsonl").read_text().splitlines()
    return {m["step"]: m["loss"] for m in map(json.loads, lines) if "loss" in m}


def assert_same_weights(*places):
    first, second = (load_file(place / "model.safetensors") for place in places)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], weight) for name, weight in second.items())


def test_a_model_is_trained_saved_and_translates_one_line_for_each(tmp_path, capsys, monkeypatch):
    output = tmp_path / "model"
    assert train(output) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "next: regard translate" in said.err
    assert run("translate", "--model", output, "1 2 3", "", "  ") == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4
    assert lines[1:] == ["", "", ""]
    assert sorted(path.name for path in output.iterdir()) == [
        "MANIFEST.json", "README.md", "config.json", "model.safetensors",
        "src_tokenizer", "tgt_tokenizer",
    ]  # fmt: skip


def test_a_resumed_run_goes_on_as_if_it_had_never_stopped(tmp_path):
    dropout = "model.dropout=0.3"
    train(tmp_path / "whole", dropout, "train.schedule=constant", steps=8)
    train(tmp_path / "parts", dropout, "train.schedule=constant", steps=4)
    train(tmp_path / "parts", dropout, "train.schedule=constant", steps=8, resume=True)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    samples = [
        (tmp_path / f"{name}.run" / "samples.jsonl").read_text() for name in ("whole", "parts")
    ]
    assert samples[0] == samples[1]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_rows_of_a_validation_that_is_done_again_are_not_doubled(tmp_path):
    """Its checkpoint is damaged, so the run goes back to the one before it."""
    output, folder = tmp_path / "model", tmp_path / "model.run"
    assert train(output, "train.schedule=constant", steps=8) == 0
    before = {name: (folder / name).read_text() for name in ("metrics.jsonl", "samples.jsonl")}
    (folder / "checkpoints" / "step-00000008" / "state.json").write_text("")
    assert train(output, "train.schedule=constant", steps=8, resume=True) == 0
    assert (folder / "samples.jsonl").read_text() == before["samples.jsonl"]
    steps = [
        [json.loads(line)["step"] for line in text.splitlines()]
        for text in (before["metrics.jsonl"], (folder / "metrics.jsonl").read_text())
    ]
    assert steps[0] == steps[1]


def test_a_run_speaks_chinese(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    output = tmp_path / "model"
    idle = ("train.patience=1", "train.metric=accuracy", "train.lr=1e-9")
    assert train(output, *idle, steps=12) == 0
    newest = tmp_path / "model.run" / "checkpoints" / "step-00000008"
    (newest / "state.json").write_text("")
    assert train(output, "train.average=2", "train.patience=0", steps=10, resume=True) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line and " → " not in line]
    commands = [line for line in said if "regard " in line]
    assert [line.split(" --")[0].split(f" {tmp_path}")[0] for line in commands] == [
        "接下来：regard translate", "        regard plot",
    ] * 2  # fmt: skip
    others = [line for line in said if line not in commands]
    assert all(re.search("[\u4e00-\u9fff]", line) for line in others), others
    for words in (
        r"200个句对，另有2,000个用于评判；共用词表\d+",
        r"[\d,]+个参数，float32，cpu",
        r"自第4次更新以来准确率没有改善：训练到此为止",
        rf"警告：{re.escape(str(newest))}已损坏，因此跳过",
        r"准确率最佳的第[48]次更新；束宽1；开发集：损失 .*",
        r"第8、10次更新的平均权重；束宽1；开发集：损失 .*",
        rf"完成，用时\d+秒，模型在{re.escape(str(output))}",
    ):
        assert any(re.fullmatch(words, line) for line in others), (words, others)


def test_an_average_that_is_worse_than_one_checkpoint_is_not_kept(tmp_path, capsys, monkeypatch):
    """Half of what is averaged has learned next to nothing; the run goes on to the same end."""
    output, folder = tmp_path / "model", tmp_path / "model.run"
    settings = (*BRIEF, "train.lr=0.01", "train.average=8")
    monkeypatch.setenv("REGARD_LANG", "en")
    assert train(output, *settings, steps=16) == 0
    updates, number = "2, 4, 6, 8, 10, 12, 14, 16", r"(\d\.\d+)"
    told = re.search(
        f"(average of updates {updates} has loss {number}, update 16 alone {number}: "
        r"update 16 is kept); beam \d; dev: loss",
        capsys.readouterr().err,
    )
    averaged, alone = map(float, told.groups()[1:])
    state = json.loads((folder / "checkpoints" / "step-00000016" / "state.json").read_text())
    assert averaged > alone == pytest.approx(state["score"], abs=1e-4)
    facts = open_bundle(output).facts
    assert facts["weights"] == told[1]
    assert facts["dev"]["loss"] == pytest.approx(alone, abs=1e-4)
    weights = (output / "model.safetensors").read_bytes()
    assert_same_weights(output, folder / "checkpoints" / "step-00000016")
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert train(output, *settings, steps=16, resume=True) == 0
    chinese = (
        f"第{updates.replace(', ', '、')}次更新的平均权重，损失为{averaged:.4f}；"
        f"单独第16次更新为{alone:.4f}；模型取第16次更新"
    )
    assert f"{chinese}；束宽" in capsys.readouterr().err
    assert (output / "model.safetensors").read_bytes() == weights
    assert open_bundle(output).facts["weights_zh"] == chinese
    card = (output / "README.md").read_text()
    assert f"weights: {told[1]}." in card
    assert f"权重：{chinese}。" in card


def test_the_settings_are_shown_as_toml_that_reads_back(capsys):
    import tomllib

    assert run("train", "--print-config", "--set", "train.seed=7") == 0
    table = tomllib.loads(capsys.readouterr().out)
    config = config_from_table(table)
    assert (config.train.seed, config.data.task) == (7, "numerals")


def test_a_bad_setting_is_one_sentence_and_exit_code_two(capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    assert run("train", "--set", "train.lrr=1") == 2
    assert capsys.readouterr().err == ("error: unknown setting train.lrr; did you mean train.lr?\n")


def test_a_damaged_model_is_refused_with_the_names_of_its_bad_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    output = tmp_path / "model"
    shutil.copytree(NUMERALS, output)
    weights = output / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (output / "README.md").unlink()
    sentence = (
        f"{output} is damaged: README.md, model.safetensors is missing or not as it was written; "
        "copy the model again"
    )
    with pytest.raises(ModelError, match=f"^{re.escape(sentence)}$"):
        open_bundle(output)
    capsys.readouterr()
    assert run("translate", "--model", output, "1") == 4
    assert capsys.readouterr().err == f"error: {sentence}\n"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda p: p.rename(p.with_name("elsewhere")), "there is no model directory {path}"),
        (lambda p: (p / "MANIFEST.json").unlink(),
         "{path} is no model directory: it has no MANIFEST.json"),
        (lambda p: (p / "MANIFEST.json").write_text("["), "{path}/MANIFEST.json is no valid JSON"),
        (lambda p: (p / "MANIFEST.json").write_text('{"format": 99}'),
         "{path} is a model of format 99, but this regard reads format 1"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(tmp_path, spoil, sentence):
    output = tmp_path / "model"
    shutil.copytree(NUMERALS, output)
    spoil(output)
    with pytest.raises(ModelError, match=f"^{re.escape(sentence.format(path=output))}$"):
        open_bundle(output)


def test_a_place_that_holds_something_else_is_refused_before_training(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("REGARD_LANG", "en")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").touch()
    assert train(tmp_path / "thesis") == 4
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'thesis'} is there already and is no model; "
        "name another place with -o\n"
    )


QUICK = ("train.steps=4", "train.validate_every=2", "train.save_every=2", "train.tokens=256")


def quick(*more):
    return [word for setting in (*QUICK, *more) for word in ("--set", setting)]


def test_two_files_are_enough(tmp_path, text, capsys):
    output = tmp_path / "model"
    small = ("model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.vocab_size=330")
    assert run("train", *text, "-o", output, *quick(*small)) == 0
    said = capsys.readouterr().err
    kept, judged = re.search(
        r"^(\d+) pairs, (\d+) more held out to judge by", said, re.MULTILINE
    ).groups()
    assert int(kept) + int(judged) == 400  # some were held out, and none of those was trained on
    assert 1 <= int(judged) <= 30
    bundle = open_bundle(output)
    assert bundle.facts["directions"] == [["xx", "yy"]]
    assert (bundle.model.n_layers, bundle.model.norm) == (2, "pre")


def test_a_little_text_of_many_characters_gets_a_vocabulary_that_holds_them(tmp_path, capsys):
    lines = ["".join(chr(0x4E00 + (7 * n + k) % 1500) for k in range(7)) for n in range(300)]
    (tmp_path / "a.zh").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "a.en").write_text("".join(f"line {n}\n" for n in range(300)))
    text = "--src", tmp_path / "a.zh", "--tgt", tmp_path / "a.en"
    small = ("model.d_model=16", "model.n_heads=2", "model.d_ff=16")
    assert run("train", *text, "-o", tmp_path / "model", *quick(*small)) == 0
    tokenizer = open_bundle(tmp_path / "model").src_tokenizer
    assert len(tokenizer.vocab) > 1000
    assert tokenizer.uncovered("".join(lines)) < 50  # of 2,100: those held out


def test_the_schedule_follows_from_the_number_of_updates_that_is_asked_for(text, capsys):
    import tomllib

    asked = ("--set", "train.steps=200", "--set", "train.save_every=7")
    assert run("train", *text, *asked, "--print-config") == 0
    train = config_from_table(tomllib.loads(capsys.readouterr().out)).train
    assert (train.warmup, train.validate_every, train.save_every) == (20, 10, 7)


def test_a_place_without_a_name_is_no_place_for_a_model(capsys):
    assert run("train", "-o", "/") == 2
    assert capsys.readouterr().err == ("error: / is no place for a model; name another with -o\n")


def test_settings_follow_from_the_text_and_the_dial(text, capsys):
    import tomllib

    shown = []
    for more in ((), ("--size", "base"), ("--set", "model.d_model=64")):
        assert run("train", *text, *more, "--print-config") == 0
        shown.append(config_from_table(tomllib.loads(capsys.readouterr().out)))
    tiny, base, changed = shown
    assert (tiny.model.d_model, tiny.data.vocab_size, tiny.data.tgt_lang) == (128, 1000, "yy")
    assert (base.model.d_model, base.model.n_layers, base.model.d_ff) == (512, 6, 2048)
    assert (changed.model.d_model, changed.model.d_ff) == (64, 512)


def test_a_model_goes_on_learning_with_its_own_words(tmp_path, text, monkeypatch):
    """No update at a rate of almost nothing: the tuned model is the old one."""
    small = ("model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.vocab_size=330")
    assert run("train", *text, "-o", tmp_path / "old", *quick(*small)) == 0
    tuning = quick("train.lr=1e-12", "train.average=0", "train.patience=0", "model.dropout=0.5")
    verified = []
    monkeypatch.setattr("regard.bundle._check_files", lambda path, files: verified.append(path))
    assert run("train", "--from", tmp_path / "old", *text, "-o", tmp_path / "new", *tuning) == 0
    assert verified == [tmp_path / "old"]  # once, though its settings are asked for first
    old, new = open_bundle(tmp_path / "old"), open_bundle(tmp_path / "new")
    assert new.model.dropout == 0.5
    assert new.src_tokenizer.vocab == old.src_tokenizer.vocab
    before, after = (load_file(bundle.weights) for bundle in (old, new))
    assert all((before[name] - after[name]).abs().max() < 1e-6 for name in before)
    assert any((before[name] != after[name]).any() for name in before)


def test_a_smaller_model_begins_with_the_layers_of_a_larger_one(tmp_path, text, capsys):
    small = ("model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.vocab_size=330")
    depth = quick(*small, "model.n_layers=[2, 3]")
    assert run("train", *text, "-o", tmp_path / "old", *depth) == 0
    still = quick("train.lr=1e-12", "train.average=0", "train.patience=0")
    shallow = (*still, "--set", "model.n_layers=[2, 2]")
    start = ("train", "--from", tmp_path / "old", *text)
    assert run(*start, "-o", tmp_path / "new", *shallow) == 0
    old, new = (open_bundle(tmp_path / name) for name in ("old", "new"))
    assert (new.model.encoder[0], new.model.decoder[0]) == (2, 2)
    before, after = (load_file(bundle.weights) for bundle in (old, new))
    assert after.keys() == {name for name in before if "decoder.layers.2." not in name}
    for name, weight in after.items():
        origin = name.replace("decoder.layers.1.", "decoder.layers.2.")  # the first and the last
        assert (before[origin] - weight).abs().max() < 1e-6
    capsys.readouterr()
    deeper = (*still, "--set", "model.n_layers=4")
    assert run(*start, "-o", tmp_path / "deep", *deeper) == 4
    sentence = "a model made of one with 2 encoder layers cannot have 4 of them"
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {sentence}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--src", "a.zh"), "give --src and --tgt together, or a recipe"),
        (("r.toml", "--src", "a.zh", "--tgt", "a.en"),
         "a recipe and --src are two ways to say what to train on; choose one"),
        (("--src", "no.zh", "--tgt", "no.en"), "there is no file no.zh"),
        (("--src", "a.zh", "--tgt", "./a.zh"),
         "a.zh is both --src and --tgt; give a text and its translation"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_on_is_one_sentence(arguments, sentence, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    assert run("train", *arguments) in (2, 3)
    assert capsys.readouterr().err == f"error: {sentence}\n"


@pytest.mark.dist
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_ranks_train_one_model(tmp_path, text, kind):
    own = [one for one in SMALL if not one.startswith("data.task")]
    settings = (*own, "train.steps=4", f"train.parallel={kind}", "train.patience=3")
    flags = [*text, *(word for setting in settings for word in ("--set", setting))]
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "if 'RANK' in os.environ:\n"
        "    atexit.register(os.abort)  # as gloo's threads may, where Python shuts down\n"
    )
    for more in ((), ("--set", "train.steps=6", "--resume")):
        done = subprocess.run(
            [
                *(sys.executable, *ranks, "-m", "regard", "train", "-o", tmp_path / "model"),
                *(*flags, *more),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stderr.count("next: regard translate") == 1  # one rank speaks for all
    assert open_bundle(tmp_path / "model").facts["updates"] == 6
    assert list(losses(tmp_path / "model")) == [2, 4, 6]


def test_text_longer_than_the_networks_positions_is_left_out_of_training_and_judging(
    tmp_path, text, capsys
):
    """A model of 12 positions, and lines of up to 20 characters."""
    few = ("model.max_len=12", "data.tokenizer=char", "data.vocab_size=300", "model.d_model=16")
    more = ("model.n_heads=2", "model.d_ff=16")
    assert run("train", *text, "-o", tmp_path / "model", *quick(*few, *more)) == 0
    said = capsys.readouterr().err
    assert re.search(r"pairs \(dropped .*[1-9]\d* by max_len\)", said)
    assert "done in" in said
