"""`regard train`: from settings and text to a model directory."""

import sys
from collections import Counter
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from regard.cli.dial import SIZES, Size, derived, tuned
from regard.config import Config, ModelConfig
from regard.errors import ConfigError
from regard.recipe import config_from_table, config_table
from regard.settings import as_toml, shown

if TYPE_CHECKING:
    from regard.bundle import Bundle
    from regard.cli.past import Resume

DEFAULT_RECIPE = Path(__file__).parents[1] / "bundled" / "numerals.toml"
FilePath = click.Path(path_type=Path)
READ_CLOSELY = 200_000  # pairs whose characters are counted


@click.command()
@click.argument("recipe", required=False, type=FilePath)
@click.option(
    "-o", "--output", type=FilePath, default=Path("regard-model"), show_default=True,
    help="Where the model goes.",
)  # fmt: skip
@click.option(
    "--set", "overrides", multiple=True, metavar="A.B=C",
    help="Change a setting; --print-config shows all.",
)  # fmt: skip
@click.option("--src", type=FilePath, help="Text to translate from, one sentence a line.")
@click.option("--tgt", type=FilePath, help="Its translation, line by line.")
@click.option("--size", type=click.Choice(get_args(Size)), help="How large a new network.")
@click.option("--from", "source", type=FilePath, help="A model to go on from (fine-tuning).")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint, if there is one.")
@click.option(
    "--resume-weights-only", is_flag=True, help="Start anew with the newest checkpoint's weights."
)
@click.option("--tensorboard", is_flag=True, help="Write curves for TensorBoard as well.")
@click.option("--print-config", is_flag=True, help="Show the settings and stop.")
def command(
    recipe: Path | None,
    output: Path,
    overrides: tuple[str, ...],
    src: Path | None,
    tgt: Path | None,
    size: str | None,
    source: Path | None,
    resume: bool,
    resume_weights_only: bool,
    tensorboard: bool,
    print_config: bool,
) -> None:
    """Train a model; without a recipe, Chinese numerals to English.

    The model goes to OUTPUT, checkpoints and metrics to OUTPUT.run.

    \b
      regard train                                   three minutes on a laptop
      regard train --src a.zh --tgt a.en -o model    your own text, no recipe
      regard train recipe.toml --set train.seed=2    a recipe, one setting changed
      regard train --from model --src b.zh --tgt b.en -o tuned
      torchrun --nproc-per-node 2 -m regard train recipe.toml
    """
    output = _with_a_name(output)
    if resume and resume_weights_only:
        raise ConfigError(
            "the option --resume goes on with a run, and --resume-weights-only begins another "
            "with its weights; choose one"
        )
    bundle = _opened(source) if source else None
    how: Resume = "all" if resume else "weights" if resume_weights_only else "no"
    before = _before(output, how, is_text_named=bool(recipe or src))
    config = settings(recipe, overrides, src, tgt, size, bundle, before, resume=how)
    if print_config:
        click.echo(as_toml(config.as_table()), nl=False)
        return
    from regard.cli.fit import run

    sys.exit(run(config, output, resume=how, source=bundle, wants_board=tensorboard))


def settings(
    recipe: Path | None,
    overrides: tuple[str, ...],
    src: Path | None,
    tgt: Path | None,
    size: str | None,
    source: "Bundle | None",
    before: dict[str, Any] | None = None,
    *,
    resume: "Resume" = "no",
) -> Config:
    """The settings of a run: those that follow from the text, the recipe's, the overrides.

    Where a run goes on or its weights are taken over, `before` is what is known of it; its settings
    hold for other text too, and only a recipe is read again.
    """
    if (src is None) != (tgt is None):
        raise ConfigError("give --src and --tgt together, or a recipe")
    if src is not None and tgt is not None and src.resolve() == tgt.resolve():
        raise ConfigError(
            "{path} is both --src and --tgt; give a text and its translation", path=src
        )
    if recipe is not None and src is not None:
        raise ConfigError("a recipe and --src are two ways to say what to train on; choose one")
    if source is not None and size is not None:
        raise ConfigError(
            "the option --size chooses a new network, and --from brings its own; leave one out"
        )
    network = asdict(source.model) if source else None
    if recipe is not None or not (src or source or before):
        table = config_table(recipe or DEFAULT_RECIPE)
        if before and "from" in before:
            network = network or before["config"]["model"]  # no recipe chose it
    else:
        table = config_table(None, under=before["config"] if before else None)
    if src is not None and tgt is not None:
        place = f"{src},{tgt}"
        if before:
            table["data"].update(_of_place(place, table["data"], resume))
        else:
            steps = config_table(None, overrides).get("train", {}).get("steps")
            steps = steps if type(steps) is int and steps > 0 else None  # else refused by and by
            table = _of_text(place, size, steps, is_tuned=source is not None)
    chosen = table.get("model", {})
    if isinstance(chosen, dict):  # else refused by and by
        known = {**network, **_changeable(chosen)} if network else chosen
        table["model"] = {**known, **(SIZES[size] if size else {})}
    config = config_from_table(config_table(None, overrides, table))
    if source is not None:
        _check_network(source, config.model)
    return _fitting(config)


def _with_a_name(output: Path) -> Path:
    """The same place by its own name: `.` has none to put .run behind."""
    named = output if output.name else output.resolve()
    if not named.name:
        raise ConfigError("{path} is no place for a model; name another with -o", path=output)
    return named


def _before(output: Path, resume: "Resume", *, is_text_named: bool) -> dict[str, Any] | None:
    """What is known of the run that is gone on with.

    Of one that has no checkpoint yet, only where nothing else says what to train on.
    """
    if resume == "no":
        return None
    from regard.cli.past import facts_before
    from regard.train.folder import folder_of

    return facts_before(folder_of(output), is_text_named=is_text_named)


def _of_place(place: str, before: dict[str, Any], resume: "Resume") -> dict[str, Any]:
    """What changes with the text; a run that goes on has told of its languages."""
    from regard.data.corpus import find_corpus

    if list(before["train"]) == [place]:
        return {}
    found = find_corpus(place, None, None)
    told = {"src_lang": found.src_lang, "tgt_lang": found.tgt_lang} if resume == "weights" else {}
    return {"train": [place], "weights": [], "task": "none", **{k: v for k, v in told.items() if v}}


def _check_network(source: "Bundle", wanted: ModelConfig) -> None:
    """Weights that are there already fit no other network."""
    was, will = asdict(source.model), asdict(wanted)
    faults = [
        ConfigError(
            "model.{name} = {found} cannot become {wanted}",
            name=name,
            found=shown(was[name]),
            wanted=shown(will[name]),
        )
        for name in was
        if was[name] != will[name] and name not in _changeable(was)
    ]
    if faults:
        raise ConfigError(
            "{faults}; with --from {path} only dropout can be changed, and model.n_layers made "
            "smaller",
            faults=tuple(faults),
            path=source.path,
        )


def _fitting(config: Config) -> Config:
    """The same, with no longer pairs than the network has positions for: an end, and a language."""
    longest = max(1, min(config.data.max_len, config.model.max_len - 2))
    return replace(config, data=replace(config.data, max_len=longest))


def _of_text(place: str, size: str | None, steps: int | None, *, is_tuned: bool) -> dict[str, Any]:
    """What two files of text ask for."""
    from regard.data.corpus import find_corpus, read_pairs

    files = find_corpus(place, None, None)
    n_pairs, characters = 0, Counter[str]()
    for n_pairs, pair in enumerate(read_pairs(files), start=1):
        if n_pairs <= READ_CLOSELY:
            characters.update(pair.src + pair.tgt)
    on_gpu = _has_gpu()
    if is_tuned:
        found = tuned(n_pairs, on_gpu=on_gpu, steps=steps)
    else:
        found = derived(n_pairs, n_needed(characters), size, on_gpu=on_gpu, steps=steps)
    languages = {"src_lang": files.src_lang, "tgt_lang": files.tgt_lang}
    return _laid_over(found, {"data": {"train": [place], **languages}})


def n_needed(characters: Counter[str]) -> int:
    """How many of them, the commonest first, a vocabulary must have."""
    from regard.text.subword import COVERED

    so_far = accumulate(n for _, n in characters.most_common())
    return sum(1 for n in so_far if n < COVERED * characters.total()) + 1


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _opened(source: Path) -> "Bundle":
    """The model that goes on learning: opened once, since every byte of it is checked."""
    from regard.bundle import open_bundle

    return open_bundle(source)


def _changeable(model: dict[str, Any]) -> dict[str, Any]:
    """What a recipe may change about a network that is there already: dropout, and its depth."""
    return {
        name: value
        for name, value in model.items()
        if name.endswith("dropout") or name == "n_layers"
    }


def _laid_over(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    sections = {**under, **over}
    return {name: {**under.get(name, {}), **over.get(name, {})} for name in sections}
