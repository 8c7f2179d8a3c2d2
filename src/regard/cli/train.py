"""`regard train`: from settings and text to a model directory."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.config import Config, read_config

if TYPE_CHECKING:
    from regard.data.prepare import Prepared
    from regard.decode.translator import Network
    from regard.train.log import Log
    from regard.train.trainer import Trainer

DEFAULT_RECIPE = Path(__file__).parents[1] / "bundled" / "numerals.toml"
JUDGED = 500  # development pairs that are translated at each validation


@click.command()
@click.argument("recipe", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("regard-model"))
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Override a setting.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint.")
@click.option("--print-config", is_flag=True, help="Show the settings and stop.")
def command(
    recipe: Path | None, output: Path, overrides: tuple[str, ...], resume: bool, print_config: bool
) -> None:
    """Train a model; without a recipe, Chinese numerals to English.

    The model goes to OUTPUT, checkpoints and metrics to OUTPUT.run.
    """
    config = read_config(recipe or DEFAULT_RECIPE, overrides)
    if print_config:
        click.echo(shown(config))
        return
    run(config, output, resume=resume)


def run(config: Config, output: Path, *, resume: bool) -> None:
    """Prepare, fit, save."""
    import torch

    from regard.bundle import check_place
    from regard.data.feed import Batches
    from regard.model.build import build_model
    from regard.train.checkpoint import load_newest
    from regard.train.log import Log
    from regard.train.optim import make_optimizer, make_schedule
    from regard.train.trainer import Trainer, TrainState

    check_place(output)
    started, settings = time.monotonic(), config.train
    folder = output.with_name(output.name + ".run")
    device = _device(settings.device)
    prepared = _prepared(config, folder / "data")
    log = Log(folder / "metrics.jsonl", settings.steps)
    log.say(_data_line(prepared))
    torch.manual_seed(settings.seed)
    vocabs = prepared.src_tokenizer.vocab, prepared.tgt_tokenizer.vocab
    model = build_model(config.model, len(vocabs[0]), len(vocabs[1])).to(device)
    optimizer = make_optimizer(model.parameters(), settings.lr)
    state = load_newest(folder / "checkpoints", model, optimizer) if resume else None
    state = state or TrainState()
    batches = Batches(
        prepared.dataset,
        prepared.src_tokenizer,
        prepared.tgt_tokenizer,
        kind=settings.batching,
        tokens=settings.tokens,
        seed=settings.seed,
        sampled=config.data.sampled,
    )
    trainer = Trainer(
        model,
        _loss(model, vocabs[1].pad, settings.label_smoothing, device),
        batches.after(state.place, workers=settings.workers),
        optimizer,
        make_schedule(settings.schedule, settings.lr, settings.warmup, settings.steps),
        accumulate=settings.accumulate,
        clip=settings.clip,
        state=state,
        hooks=_hooks(config, prepared, folder, log, device),
    )
    log.start(state.step, state.n_tokens)
    trainer.fit(settings.steps)
    save(config, output, prepared, model, trainer)
    minutes = (time.monotonic() - started) / 60
    example = prepared.dev[0].src if prepared.dev else "…"
    log.say(f"done in {minutes:.1f} min; next: regard translate --model {output} {example}")


def save(
    config: Config, output: Path, prepared: "Prepared", model: "Network", trainer: "Trainer"
) -> None:
    """The trained model as a directory."""
    from safetensors.torch import save_file

    from regard import __version__
    from regard.bundle import write_bundle
    from regard.model.weights import weights_of

    facts = {
        "regard": __version__,
        "languages": list(prepared.dataset.languages),
        "updates": trainer.state.step,
        "target_tokens": trainer.state.n_tokens,
    }
    write_bundle(
        output,
        config.model,
        (prepared.src_tokenizer, prepared.tgt_tokenizer),
        lambda path: save_file(weights_of(model), path),
        facts=facts,
        card=_card(config, facts),
    )


def shown(config: Config) -> str:
    """The settings as TOML."""
    import json

    lines = []
    for section, values in config.as_table().items():
        lines.append(f"[{section}]")
        lines += [
            f"{name} = {json.dumps(list(v) if isinstance(v, tuple) else v, ensure_ascii=False)}"
            for name, v in values.items()
            if not isinstance(v, dict)
        ]
        lines.append("")
    return "\n".join(lines)


def _loss(model: Any, pad: int, smoothing: float, device: Any) -> Any:
    from regard.data.batch import Batch
    from regard.train.loss import label_smoothed_loss

    def loss(batch: Batch) -> Any:
        batch = batch.to(device)
        logits = model(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        return label_smoothed_loss(logits, batch.labels, pad, smoothing)

    return loss


def _hooks(config: Config, prepared: "Prepared", folder: Path, log: "Log", device: Any) -> Any:
    from regard.decode.translator import translate_with
    from regard.train.checkpoint import save_checkpoint
    from regard.train.trainer import Trainer

    settings = config.train
    judged = prepared.dev[:JUDGED]

    def save(trainer: Trainer) -> None:
        save_checkpoint(
            folder / "checkpoints",
            trainer.model,
            trainer.optimizer,
            trainer.state,
            keep=settings.keep,
        )

    def validate(trainer: Trainer) -> None:
        tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
        trainer.model.eval()
        texts = [pair.src for pair in judged]
        said = translate_with(trainer.model, *tokenizers, texts, device)  # type: ignore[arg-type]
        exact = sum(a == b.tgt for a, b in zip(said, judged, strict=True)) / max(len(judged), 1)
        log.write(step=trainer.state.step, dev_exact=exact)
        log.say(f"dev: {exact:.1%} exact; {judged[0].src} → {said[0]}" if judged else "no dev set")

    hooks: dict[int, list[Any]] = {}
    for every, action in (
        (settings.log_every, log.progress),
        (settings.validate_every, validate),
        (settings.save_every, save),
    ):
        hooks.setdefault(every, []).append(action)
    return hooks


def _prepared(config: Config, folder: Path) -> "Prepared":
    """The dataset, by as many processes as there are cores, with a bar that shows it is alive."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from regard.data.prepare import prepare

    columns = (BarColumn(), TextColumn("{task.completed:,.0f} pairs"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        reading = bar.add_task("", total=None)  # a stream does not know its end
        return prepare(
            config.data,
            folder,
            seed=config.train.seed,
            workers=os.cpu_count() or 1,
            progress=lambda n: bar.update(reading, completed=n),
        )


def _data_line(prepared: "Prepared") -> str:
    dropped = ", ".join(
        f"{n:,} by {reason}" for reason, n in sorted(prepared.dataset.dropped.items())
    )
    return (
        f"{len(prepared.dataset):,} pairs ({'dropped ' + dropped if dropped else 'none dropped'}), "
        f"{len(prepared.src_tokenizer.vocab):,} and {len(prepared.tgt_tokenizer.vocab):,} words"
    )


def _device(name: str) -> Any:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def _card(config: Config, facts: dict[str, Any]) -> str:
    corpus = config.data.task if config.data.task != "none" else ", ".join(config.data.train)
    return (
        f"# A regard model\n\nTrained by regard {facts['regard']} on {corpus}: "
        f"{facts['updates']:,} updates, {facts['target_tokens']:,} target tokens.\n"
    )
