import json
import shutil
import sys
import tomllib

import pytest

from regard.bundle import open_bundle
from regard.cli import judge
from regard.cli.main import main

SMALL = (
    "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.vocab_size=330",
    "train.validate_every=20", "train.save_every=20", "train.tokens=256",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_are_judged(monkeypatch):
    """A network that has learned nothing goes on and on, and 500 sentences take it seconds."""
    monkeypatch.setattr(judge, "JUDGED", 40)


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code or 0


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def settings_of(folder):
    return json.loads((folder / "run.json").read_text())["config"]


def weights(model):
    return (model / "model.safetensors").read_bytes()


def test_a_run_goes_on_as_it_began_whether_or_not_its_text_is_named_again(tmp_path, text):
    for name, steps in (("whole", 40), ("bare", 20)):
        asked = sets(*SMALL, "train.warmup=30", f"train.steps={steps}")
        assert run("train", *text, "-o", tmp_path / name, *asked) == 0
    for name in ("named", "all"):
        shutil.copytree(tmp_path / "bare.run", tmp_path / f"{name}.run")
    more = (*sets("train.steps=40"), "--resume")
    assert run("train", "-o", tmp_path / "bare", *more) == 0
    assert run("train", *text, "-o", tmp_path / "named", *more) == 0
    assert run("train", *text, "-o", tmp_path / "all", *sets(*SMALL), *more) == 0
    for name in ("bare", "named", "all"):
        assert weights(tmp_path / name) == weights(tmp_path / "whole")
    larger = "--size", "base"  # that is another network, and the run says so
    assert run("train", *text, "-o", tmp_path / "named", *larger, *more) == 2


def test_a_model_that_learns_more_goes_on_at_its_own_pace_without_it(tmp_path, text):
    old, tuned = tmp_path / "old", tmp_path / "tuned"
    small = sets(*SMALL, "train.steps=4")
    assert run("train", *text, "-o", old, *small) == 0
    assert run("train", "--from", old, *text, "-o", tuned, *sets("train.steps=4")) == 0
    began = settings_of(tmp_path / "tuned.run")
    assert began["train"]["schedule"] == "cosine"
    assert run("train", *text, "-o", tuned, "--resume", *sets("train.steps=8")) == 0
    assert settings_of(tmp_path / "tuned.run") == {**began, "train": {**began["train"], "steps": 8}}


def test_a_run_that_never_got_on_decides_nothing_for_other_text(tmp_path, text, capsys):
    command, shown = ("train", *text, "-o", tmp_path / "m", "--print-config"), []
    for more in ((), ("--resume",)):
        assert run(*command, *more) == 0
        shown.append(tomllib.loads(capsys.readouterr().out))
        facts = {"command": [], "text": "", "ranks": 1, "device": "", "threads": 1}
        facts["versions"] = {"regard": "", "torch": ""}
        other = {**shown[0], "train": {**shown[0]["train"], "steps": 7}}
        (tmp_path / "m.run").mkdir(exist_ok=True)
        (tmp_path / "m.run" / "run.json").write_text(json.dumps({**facts, "config": other}))
    assert shown[0] == shown[1]
    nothing_named = ("train", "-o", tmp_path / "m", "--resume", "--print-config")
    assert run(*nothing_named) == 0
    assert tomllib.loads(capsys.readouterr().out)["train"]["steps"] == 7
    (tmp_path / "m.run" / "run.json").write_text("{}")
    assert run(*nothing_named) == 4  # and does not begin with something else


def test_a_recipe_need_not_repeat_the_network_of_the_model_it_goes_on_with(tmp_path, text):
    old, tuned = tmp_path / "old", tmp_path / "tuned"
    assert run("train", *text, "-o", old, *sets(*SMALL, "train.steps=4")) == 0
    recipe = tmp_path / "more.toml"
    places = ",".join(map(str, text[1::2]))
    recipe.write_text(f'[data]\ntrain = ["{places}"]\nsrc_lang = "xx"\ntgt_lang = "yy"\n')
    brief = sets("train.tokens=256", "train.steps=4")
    assert run("train", recipe, "--from", old, "-o", tuned, *brief) == 0
    began = settings_of(tmp_path / "tuned.run")
    longer = sets("train.tokens=256", "train.steps=8")
    assert run("train", recipe, "-o", tuned, *longer, "--resume") == 0
    assert settings_of(tmp_path / "tuned.run")["model"] == began["model"]
    assert run("train", recipe, "-o", tuned, *longer, "--resume-weights-only") == 0
    assert settings_of(tmp_path / "tuned.run")["model"] == began["model"]


def test_weights_that_meet_other_text_keep_what_their_run_was_set_to(tmp_path, text):
    out = "-o", tmp_path / "model"
    assert run("train", *text, *out, *sets(*SMALL, "train.steps=4", "train.lr=0.004")) == 0
    words = len(open_bundle(tmp_path / "model").src_tokenizer.vocab)
    began = settings_of(tmp_path / "model.run")
    other = [tmp_path / "b.xx", tmp_path / "b.zz"]
    for old, new in zip(text[1::2], other, strict=True):
        new.write_text(old.read_text() * 2)
    named = "--src", other[0], "--tgt", other[1]
    assert run("train", *named, *out, "--resume-weights-only") == 0
    now = settings_of(tmp_path / "model.run")
    place = f"{other[0]},{other[1]}"
    assert now == {**began, "data": {**began["data"], "train": [place], "tgt_lang": "zz"}}
    assert len(open_bundle(tmp_path / "model").src_tokenizer.vocab) == words


def test_text_that_a_run_did_not_begin_with_is_refused_by_its_name_alone(tmp_path, text, capsys):
    places = ",".join(map(str, text[1::2]))
    weights = f'data.train=["{places}", "{places}"]', "data.weights=[1.0, 2.0]"
    recipe = tmp_path / "two.toml"
    recipe.write_text('[data]\nsrc_lang = "xx"\ntgt_lang = "yy"\n')
    small = sets(*SMALL, "model.n_layers=1", "train.steps=4", *weights)
    assert run("train", recipe, "-o", tmp_path / "model", *small) == 0
    capsys.readouterr()
    assert run("train", *text, "-o", tmp_path / "model", "--resume") == 2
    assert capsys.readouterr().err.startswith("error: data.train was [")


def test_a_task_can_be_left_for_text_of_ones_own_by_the_weights_alone(tmp_path, text, capsys):
    out = "-o", tmp_path / "model"
    task = sets("data.task=numerals", "data.task_pairs=200", "data.tokenizer=char")
    assert run("train", *out, *task, *sets(*SMALL, "train.steps=4", "model.n_layers=1")) == 0
    capsys.readouterr()
    assert run("train", *text, *out, "--resume") == 2
    assert (
        'data.task was "numerals" when this run began and is "none" now' in capsys.readouterr().err
    )
    assert run("train", *text, *out, "--resume-weights-only") == 0
    assert settings_of(tmp_path / "model.run")["data"]["task"] == "none"


def test_where_there_are_no_weights_none_can_be_taken(tmp_path, text, capsys):
    assert run("train", *text, "-o", tmp_path / "m", "--resume-weights-only") == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'm.run'} has no checkpoint whose weights could be taken; leave out "
        "--resume-weights-only to begin there\n"
    )


def test_a_model_whose_run_is_gone_is_not_trained_over(tmp_path, text, capsys):
    asked = ("train", *text, "-o", tmp_path / "m", *sets(*SMALL, "train.steps=4"))
    assert run(*asked) == 0
    shutil.rmtree(tmp_path / "m.run")
    before = weights(tmp_path / "m")
    for flag in ((), ("--resume",)):
        capsys.readouterr()
        assert run(*asked, *flag) == 2
        assert capsys.readouterr().err == (
            f"error: {tmp_path / 'm'} is a model already, and no run beside it made it; move it "
            "away, or name another place with -o\n"
        )
    assert weights(tmp_path / "m") == before


def test_the_commands_of_a_run_are_kept_the_first_and_those_that_went_on(
    tmp_path, text, monkeypatch
):
    def asked(*words):
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
        assert run(*words) == 0

    first = "train", *text, "-o", tmp_path / "m", *sets(*SMALL, "train.steps=4")
    asked(*first)
    for steps in (6, 8):
        asked("train", "-o", tmp_path / "m", "--resume", *sets(f"train.steps={steps}"))
    facts = json.loads((tmp_path / "m.run" / "run.json").read_text())
    assert facts["command"] == ["regard", *map(str, first)]
    assert [each["update"] for each in facts["resumed"]] == [4, 6]
    assert facts["resumed"][1]["command"][-1] == "train.steps=8"


def test_a_model_that_will_go_another_way_is_told_of(tmp_path, text, capsys):
    old = tmp_path / "old"
    assert run("train", *text, "-o", old, *sets(*SMALL, "train.steps=4")) == 0
    back = "--src", text[3], "--tgt", text[1]
    for named, is_told in ((text, False), (back, True)):
        capsys.readouterr()
        tuned = tmp_path / f"tuned-{is_told}"
        assert run("train", "--from", old, *named, "-o", tuned, *sets("train.steps=1")) == 0
        warning = f"{old} translates xx → yy, and with this text it becomes yy → xx"
        assert (warning in capsys.readouterr().err) == is_told


def test_a_task_or_a_model_that_names_no_language_goes_no_other_way(tmp_path, text, capsys):
    told, untold = tmp_path / "told", tmp_path / "untold"
    brief = sets(*SMALL, "train.steps=1")
    assert run("train", *text, "-o", told, *brief) == 0
    copies = sets("data.task=copy", "data.task_pairs=200", "data.tokenizer=char")
    assert run("train", "-o", untold, *copies, *brief, *sets("model.n_layers=1")) == 0
    task = tmp_path / "task.toml"
    task.write_text('[data]\ntask = "copy"\ntask_pairs = 200\n')
    capsys.readouterr()
    assert run("train", task, "--from", told, "-o", tmp_path / "a", *sets("train.steps=1")) == 0
    assert run("train", "--from", untold, *text, "-o", tmp_path / "b", *sets("train.steps=1")) == 0
    assert "with this text it becomes" not in capsys.readouterr().err


def test_a_run_whose_checkpoint_a_kill_hid_goes_on_with_its_own_settings(tmp_path, text):
    asked = ("train", *text, "-o", tmp_path / "m")
    assert run(*asked, *sets(*SMALL, "train.steps=4", "train.lr=0.004")) == 0
    (place,) = (tmp_path / "m.run" / "checkpoints").iterdir()
    draft = place.with_name(f".{place.name}.abcdefgh.draft")
    shutil.copytree(place, draft)  # as between the two moves of one that is written again
    place.rename(draft.with_name(f"{draft.name}.old"))
    assert run(*asked, "--resume", *sets("train.steps=6")) == 0
    assert settings_of(tmp_path / "m.run")["train"]["lr"] == 0.004


def test_a_section_that_is_none_is_refused_beside_a_model_and_a_size_too(tmp_path, text, capsys):
    assert run("train", *text, "-o", tmp_path / "old", *sets(*SMALL, "train.steps=1")) == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("model = 3\n")
    for more in (("--from", tmp_path / "old"), ("--size", "tiny")):
        capsys.readouterr()
        assert run("train", recipe, *more, "-o", tmp_path / "m") == 2
        sentence = "error: model = 3 must be a section of settings, [model]\n"
        assert capsys.readouterr().err == sentence


def test_going_on_and_beginning_anew_are_not_asked_for_at_once(tmp_path, capsys):
    assert run("train", "-o", tmp_path / "m", "--resume", "--resume-weights-only") == 2
    assert "choose one" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
