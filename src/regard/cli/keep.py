"""What a run leaves behind: checkpoints, snapshots, and at the end the model."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import __version__
from regard.bundle import write_bundle
from regard.cli.judge import LOWER_IS_BETTER, METRICS
from regard.errors import ResourceError
from regard.model.weights import save_tensors
from regard.train.average import average
from regard.train.checkpoint import (
    Checkpoint,
    best_checkpoints,
    checkpoints,
    is_whole,
    remove_all_but,
    weights_in,
    write_checkpoint,
)

if TYPE_CHECKING:
    from torch import Tensor

    from regard.cli.judge import Judge
    from regard.config import Config, TrainConfig
    from regard.data.prepare import Prepared
    from regard.train.log import Log
    from regard.train.state import TrainState
    from regard.train.trainer import Trainer

Chosen = tuple[dict[str, "Tensor"], str, str]  # weights, and which in English and in Chinese
SPARE = 2  # checkpoints kept at least: should the newest be damaged, there is one before it


class Saving:
    """The hook that writes checkpoints, and drops those that nobody will ask for.

    A disk may take as long as many updates do. So a thread writes the copy that a checkpoint is
    while the run goes on; only the next save and the end of the run wait for it.
    """

    def __init__(
        self,
        directory: Path,
        settings: "TrainConfig",
        log: "Log",
        saved: "TrainState | None" = None,  # of the checkpoint that the run goes on from
    ) -> None:
        self.directory, self.settings, self.log = directory, settings, log
        self._whole: set[Path] = set()  # what was found whole once is not hashed again
        self._thread = ThreadPoolExecutor(1, "saving")
        self._writing: tuple[int, Future[None]] | None = None
        self._saved = _judged(saved) if saved else (0, 0)

    def __call__(self, trainer: "Trainer") -> None:
        """Begin to write a checkpoint, once the one before it is written; one for each update.

        Another only if it was judged since: the run was stopped before that could be done.
        """
        if _judged(trainer.state) == self._saved:
            return
        self._saved = _judged(trainer.state)
        self._await()
        checkpoint = trainer.checkpoint()  # every rank gives its share
        if trainer.parallel.is_first:
            future = self._thread.submit(self._write, checkpoint)
            self._writing = checkpoint.state.step, future

    def look(self, trainer: "Trainer") -> None:
        """Tell of a save that failed meanwhile."""
        if self._writing is not None and self._writing[1].done():
            self._await()

    def finish(self) -> None:
        """Wait for the last checkpoint; if it failed, nothing will be saved later."""
        if (error := self._await()) is not None:
            raise error

    def close(self) -> None:
        """However the run ends, the folder is its own until all is written."""
        self._thread.shutdown()

    def _await(self) -> OSError | ResourceError | None:
        """Wait for what is being written; what went wrong is told, and given back."""
        if self._writing is None:
            return None
        (step, future), self._writing = self._writing, None
        try:
            future.result()
        except (OSError, ResourceError) as error:
            self.log.warn(
                f"update {step} could not be saved: {error}",
                f"第{step}次更新未能保存：{_in_chinese(error)}",
            )
            return error
        return None

    def _write(self, checkpoint: Checkpoint) -> None:
        written = write_checkpoint(self.directory, checkpoint)
        self._whole.add(written)
        remove_all_but(self.directory, _wanted(written, self.settings, self._verify))

    def _verify(self, place: Path) -> bool:
        if place not in self._whole and is_whole(place):
            self._whole.add(place)
        return place in self._whole


def _judged(state: "TrainState") -> tuple[int, int]:
    """What tells a checkpoint from the one before it."""
    return state.step, state.score_step


def _wanted(written: Path, settings: "TrainConfig", verify: Callable[[Path], bool]) -> list[Path]:
    """What is kept once a checkpoint is written; later ones were damaged, so the run went back."""
    places = [place for place in checkpoints(written.parent) if place <= written]
    n_best = max(1, settings.average if settings.average_of == "best" else 0)
    last = _due(places, settings)[: settings.average] if settings.average_of == "last" else []
    return [*places[:SPARE], *last, *_best(written.parent, n_best, settings.metric, verify)]


def _due(places: Sequence[Path], settings: "TrainConfig") -> list[Path]:
    """Those that were saved because it was time, and not because the run was asked to leave.

    Nor because it began: weights that were taken over have learned nothing here yet.
    """
    paces = settings.save_every, settings.validate_every, settings.steps
    steps = ((_step(place), place) for place in places)
    return [place for step, place in steps if step and any(step % pace == 0 for pace in paces)]


def _first_whole(places: Sequence[Path], n: int) -> list[Path]:
    return list(islice(filter(is_whole, places), n))


def _step(place: Path) -> int:
    return int(place.name.removeprefix("step-"))


def _best(
    directory: Path, n: int, metric: str, verify: Callable[[Path], bool] = is_whole
) -> list[Path]:
    lower_is_better = metric in LOWER_IS_BETTER
    return best_checkpoints(directory, n, lower_is_better=lower_is_better, verify=verify)


def final_weights(
    directory: Path, settings: "TrainConfig", trainer: "Trainer", judge: "Judge"
) -> Chosen:
    """The weights the settings ask for, but no average that is worse than one checkpoint."""
    own = trainer.weights()  # gathered from all ranks, so asked for whether it is wanted or not
    if settings.average:
        n, newest = settings.average, checkpoints(directory)
        best = _best(directory, n, settings.metric) if settings.average_of == "best" else []
        chosen = best or _first_whole(_due(newest, settings), n) or _first_whole(newest, n)
        steps = [str(_step(place)) for place in sorted(chosen)]
        words = f"average of updates {', '.join(steps)}", f"第{'、'.join(steps)}次更新的平均权重"
        averaged = average(weights_in(place) for place in chosen)
        return _better_alone(directory, settings, judge, averaged, words) or (averaged, *words)
    if settings.patience and not settings.ema and (best := _best(directory, 1, settings.metric)):
        step, (english, chinese, _) = _step(best[0]), METRICS[settings.metric]
        words = f"update {step}, the best by {english}", f"{chinese}最佳的第{step}次更新"
        return weights_in(best[0]), *words
    step = trainer.state.step
    if settings.ema:
        return own, f"running average at update {step}", f"第{step}次更新时的滑动平均"
    return own, f"update {step}", f"第{step}次更新"


def _better_alone(
    directory: Path,
    settings: "TrainConfig",
    judge: "Judge",
    averaged: dict[str, "Tensor"],
    words: tuple[str, str],
) -> Chosen | None:
    """The best checkpoint, if it does better than the average, both translating greedily.

    Both are judged here, by the same weights in the same search: what a checkpoint scored when it
    was written may come from another processor, before a restart.
    """
    metric, best = settings.metric, _best(directory, 1, settings.metric)
    if not best:
        return None
    alone, step = weights_in(best[0]), _step(best[0])
    together, single = judge.scores(averaged), judge.scores(alone)
    if not together or not single or _cost(single, metric) >= _cost(together, metric):
        return None
    a, b = _told_apart(together[metric], single[metric], metric)
    english, chinese, _ = METRICS[metric]
    return (
        alone,
        f"{words[0]} has {english} {a}, update {step} alone {b}: update {step} is kept",
        f"{words[1]}，{chinese}为{a}；单独第{step}次更新为{b}；模型取第{step}次更新",
    )


def _told_apart(a: float, b: float, metric: str) -> tuple[str, str]:
    """Two scores as people write them, with more decimals if they would read the same."""
    forms = METRICS[metric][2], "{:.4g}"
    form = next((form for form in forms if form.format(a) != form.format(b)), "{:g}")
    return form.format(a), form.format(b)


def _cost(scores: Mapping[str, float], metric: str) -> float:
    """A score turned so that lower is better; nothing is worse than what is no number."""
    cost = scores[metric] if metric in LOWER_IS_BETTER else -scores[metric]
    return math.inf if math.isnan(cost) else cost


def write_model(
    place: Path,
    config: "Config",
    prepared: "Prepared",
    weights: Mapping[str, "Tensor"],
    state: "TrainState",
    *,
    chosen: tuple[str, str],
    scores: Mapping[str, float] | None = None,
    beam: int = 1,
    signature: str = "",
    decode: Mapping[str, Any] | None = None,
) -> None:
    """A trained model as a directory.

    Which weights were `chosen` is said in English and in Chinese; `decode` is how the model it
    began with was asked.
    """
    facts = {
        "regard": __version__,
        "directions": [list(direction) for direction in prepared.directions],
        "updates": state.step,
        "target_tokens": state.n_tokens,
        "weights": chosen[0],
        "weights_zh": chosen[1],
        "decode": {**(decode or {}), "beam": beam},
        "dev": {name: round(value, 4) for name, value in (scores or {}).items()},
    }
    write_bundle(
        place,
        config.model,
        (prepared.src_tokenizer, prepared.tgt_tokenizer),
        lambda path: save_tensors(weights, path),
        facts=facts,
        card=_card(config, facts, signature),
    )


def snapshots(
    folder: Path,
    config: "Config",
    prepared: "Prepared",
    log: "Log",
    decode: Mapping[str, Any] | None = None,
) -> list[tuple[int, Callable[["Trainer"], None]]]:
    """A hook for each named update: the model as it was then, ready to translate and to look at."""

    def keeping(step: int) -> Callable[["Trainer"], None]:
        def keep(trainer: "Trainer") -> None:
            weights = trainer.weights()
            if trainer.state.step == step and trainer.parallel.is_first:
                place = folder / f"step-{step:08d}"
                chosen = f"update {step}", f"第{step}次更新"
                try:
                    write_model(
                        *(place, config, prepared, weights, trainer.state),
                        chosen=chosen,
                        decode=decode,
                    )
                except (OSError, ResourceError) as error:
                    log.warn(
                        f"the snapshot of update {step} could not be kept: {error}",
                        f"第{step}次更新的快照未能保留：{_in_chinese(error)}",
                    )

        return keep

    return [(step, keeping(step)) for step in config.train.snapshots]


def _in_chinese(error: OSError | ResourceError) -> str:
    return error.in_language("zh") if isinstance(error, ResourceError) else str(error)


def _card(config: "Config", facts: Mapping[str, Any], signature: str) -> str:
    """What the model is, for people: data, size, how good."""
    data = config.data
    corpus = f"the generated task {data.task}" if data.task != "none" else ", ".join(data.train)
    licences = sorted({known["licence"] for known in data.source.values() if "licence" in known})
    lines = [
        "# A regard model",
        "",
        f"Trained by regard {facts['regard']} on {corpus}: {facts['updates']:,} updates, "
        f"{facts['target_tokens']:,} target tokens; weights: {facts['weights']}.",
        "",
        f"- from → to: {', '.join(' → '.join(way) for way in facts['directions'])}",
        f"- network: {config.model.in_words}",
    ]
    if licences:
        lines.append(f"- licences of the text: {'; '.join(licences)}")
    lines.append(f"- 权重：{facts['weights_zh']}。")
    beam = facts["decode"]["beam"]
    if dev := facts["dev"]:
        lines.append(
            f"- development text, {'greedy' if beam == 1 else f'beam {beam}'}: "
            f"BLEU {dev['bleu']:.2f} ({signature}), "
            f"chrF {dev['chrf']:.1f}, exact {dev['exact']:.1f} %, loss {dev['loss']:.3f}"
        )
    return "\n".join(lines) + "\n"
