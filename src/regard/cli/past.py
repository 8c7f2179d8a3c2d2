"""What a run goes on from: whether it may, the newest checkpoint, and how it begins anew."""

import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.bundle import Bundle, check_place
from regard.config import Config
from regard.data.prepare import vocabulary_print
from regard.errors import ConfigError, ModelError
from regard.train.checkpoint import (
    Checkpoint,
    checkpoints,
    finish_interrupted,
    has_any,
    newest_checkpoint,
    write_checkpoint,
)
from regard.train.folder import (
    check_network,
    check_same,
    differences,
    facts,
    ignored_words,
    record,
    recorded,
)
from regard.train.log import Log
from regard.train.parallel import Parallel
from regard.train.state import TrainState

Resume = Literal["no", "all", "weights"]
ANEW = "checkpoints.new"  # of a run that begins with another's weights, until that is put aside


@dataclass(frozen=True)
class Past:
    """What a run folder holds of an earlier start, and how much of that is wanted."""

    folder: Path
    resume: Resume
    places: list[Path]  # of its checkpoints, the newest first
    before: dict[str, Any] | None  # what it was recorded to be made of, where that is wanted
    source: Bundle | None = None  # the model named by --from

    @property
    def goes_on(self) -> dict[str, Any] | None:
        """What the run that goes on here began with, if one does."""
        return self.before if self.resume == "all" else None

    @property
    def reached(self) -> int:
        """The update of the newest checkpoint."""
        return int(self.places[0].name.removeprefix("step-")) if self.places else 0

    @property
    def origin(self) -> dict[str, Any]:
        """The model that its weights began with, and how that is to be asked, if there was one.

        Weights that are here already did not begin with what is named only now.
        """
        known = self.before or {}
        if self.before is None and self.source is not None:
            known = {**self.source.facts, "from": str(self.source.path.resolve())}
        return {name: known[name] for name in ("from", "decode") if known.get(name)}

    @property
    def vocabulary(self) -> str | None:
        """What its weights know; of a run that did not write it down, what is there."""
        if not self.places or self.resume == "no":
            return None
        if self.before and "vocabulary" in self.before:
            return str(self.before["vocabulary"])
        with suppress(OSError):
            return vocabulary_print(self.folder / "data")
        return None

    def is_model_wanted(self, config: Config) -> bool:
        """Whether a run that goes on is asked for a model of what it is, before its end."""
        before, steps = self.goes_on, config.train.steps
        return before is not None and steps <= max(1, self.reached) and steps < _steps(before)

    def began(self, ranks: int) -> int:
        """Among how many ranks it began."""
        return int(self.goes_on["ranks"]) if self.goes_on else ranks

    def facts(
        self, config: Config, text: str, parallel: Parallel, vocabulary: str | None
    ) -> dict[str, Any]:
        """What the run is made of; some of it only that which it began with can tell."""
        made = facts(config, text, self.began(parallel.ranks), parallel.device)
        before = self.goes_on or {}
        if before:
            made |= _commands(before, self.reached, made["command"])
        if before and config.train.tokens == "auto":  # found out when the run began
            made["config"]["train"]["tokens"] = before["config"]["train"]["tokens"]
        if self.is_model_wanted(config):  # its end is still where it was
            made["config"]["train"]["steps"] = _steps(before)
        words = vocabulary or before.get("vocabulary")
        return {**made, **({"vocabulary": words} if words else {}), **self.origin}

    def ask(self, now: Mapping[str, Any], log: Log) -> None:
        """Whether it may go on from there as what it is now, or begin where nothing is."""
        if self._is_source_idle():
            log.warn(
                f"the weights are those of {self.folder}, not of the model named with --from",
                f"权重来自{self.folder}，而不是--from给出的模型",
            )
        match self.resume:
            case "no" if self.places:
                raise ConfigError(
                    "{folder} holds a run that reached update {step}; go on with --resume, or "
                    "name another place with -o",
                    folder=self.folder,
                    step=self.reached,
                )
            case "weights" if self.before:
                check_network(self.before, now)
                if ignored := ", ".join(ignored_words(self.before, now)):
                    log.warn(
                        f"the weights keep their vocabulary: {ignored} is ignored",
                        f"权重沿用原来的词表：{ignored}不起作用",
                    )
            case "weights" if self.places:
                self._ask_for_words(log)
            case "all" if self.places:
                self._ask_to_go_on(now, log)
            case "all" | "weights" if not self.places:
                self._ask_to_begin(now)

    def _ask_to_go_on(self, now: Mapping[str, Any], log: Log) -> None:
        if self.before is None:
            raise _unknown(self.folder)
        check_same(self.before, now)
        if changed := ", ".join(differences(self.before, now)):
            log.warn(f"this will not repeat to the bit: {changed}", f"结果不会逐位重现：{changed}")

    def _is_source_idle(self) -> bool:
        """Whether a model is named with --from whose weights are not wanted any more."""
        if self.source is None or self.resume == "no" or not self.places:
            return False
        return (self.before or {}).get("from") != str(self.source.path.resolve())

    def _ask_for_words(self, log: Log) -> None:
        """Weights of which no record is left: their words, at least, must be those they know."""
        if self.vocabulary is None and self.source is None:
            raise ModelError(
                "{folder} has neither run.json nor data, so nobody knows the vocabulary of its "
                "weights; name a model that has it with --from",
                folder=self.folder,
            )
        log.warn(
            f"{self.folder / 'run.json'} cannot be read: make sure that these weights were trained "
            "in the network of these settings",
            f"无法读取{self.folder / 'run.json'}：请确认这些权重就是按这些设置的网络训练的",
        )

    def _ask_to_begin(self, now: Mapping[str, Any]) -> None:
        """What was to go on from something is not to begin from chance instead."""
        begun = recorded(self.folder)
        if begun and "from" in begun and "from" not in now:
            raise ConfigError(
                "{folder} was begun with --from {model} and has no checkpoint yet; give --from "
                "again, or name another place with -o",
                folder=self.folder,
                model=begun["from"],
            )
        if self.resume == "weights":
            raise ConfigError(
                "{folder} has no checkpoint whose weights could be taken; leave out "
                "--resume-weights-only to begin there",
                folder=self.folder,
            )
        if begun and _steps(now) == 1 < _steps(begun):
            raise ConfigError(
                "{folder} has no checkpoint yet to make a model of; leave out --resume to begin "
                "again with train.steps = 1",
                folder=self.folder,
            )

    def checkpoint(self, log: Log) -> Checkpoint | None:
        """The newest that is whole, or its weights alone; None where a run begins."""
        if self.resume == "no":
            return None
        found = newest_checkpoint(
            self.folder / "checkpoints",
            lambda place: log.warn(
                f"{place} is damaged, so it is passed over", f"{place}已损坏，因此跳过"
            ),
        )
        if found is None and self.places:
            raise ModelError(
                "every checkpoint in {folder} is damaged, so there is nothing to go on from; "
                "name another place with -o to begin anew",
                folder=self.folder / "checkpoints",
            )
        if found is None:
            log.say(
                f"no checkpoint in {self.folder} yet: this is the beginning",
                f"{self.folder}里还没有检查点：从头开始",
            )
        elif self.resume == "weights":
            return Checkpoint(TrainState(), found.weights, {})
        return found


def past_of(folder: Path, resume: Resume, source: Bundle | None = None) -> Past:
    """What there is in a run folder."""
    places = checkpoints(folder / "checkpoints")
    before = recorded(folder) if places and resume != "no" else None
    return Past(folder, resume, places, before, source)


def check_output(output: Path, folder: Path) -> None:
    """Refuse to train what would in the end take the place of a model that is not this run's."""
    check_place(output)
    has_begun = (folder / ANEW).exists() or (folder / "checkpoints").exists()
    if (output / "MANIFEST.json").exists() and not has_begun:
        raise ConfigError(
            "{path} is a model already, and no run beside it made it; move it away, or name "
            "another place with -o",
            path=output,
        )


def facts_before(folder: Path, *, is_text_named: bool) -> dict[str, Any] | None:
    """What the run is made of that began here, or is left half begun; with a text, if it got on.

    Whoever asks does not hold the folder yet, so what a kill left undone is not finished here.
    """
    is_anew = (folder / ANEW).exists() and not (folder / "checkpoints").exists()
    places = [folder / ANEW, folder] if is_anew else [folder]
    facts = next(filter(None, map(recorded, places)), None)
    has_got_on = is_anew or has_any(folder / "checkpoints")
    is_there = has_got_on or (folder / "run.json").exists()
    if facts is None and is_there and not is_text_named:
        raise _unknown(folder)
    return facts if has_got_on or not is_text_named else None


def _commands(before: Mapping[str, Any], reached: int, command: list[str]) -> dict[str, Any]:
    """The command that began the run, and those that went on with it, each from its update."""
    later = [*before.get("resumed", []), {"update": reached, "command": command}]
    return {"command": before["command"], "resumed": later}


def _steps(facts: Mapping[str, Any]) -> int:
    return int(facts["config"]["train"]["steps"])


def _unknown(folder: Path) -> ModelError:
    return ModelError(
        "{path} cannot be read, so nobody knows what this run began with; take its weights alone, "
        "with --resume-weights-only and a recipe, or --src and --tgt",
        path=folder / "run.json",
    )


def begin_anew(folder: Path, beginning: Checkpoint, facts: Mapping[str, Any]) -> None:
    """The weights are known to fit: only now the run they come from is put aside.

    A kill at any moment leaves that run to go on with, or one that begins with its weights: the
    moment between the two is when the checkpoints are put aside.
    """
    write_checkpoint(folder / ANEW, beginning)
    record(folder / ANEW, facts)
    _put_aside(folder / "checkpoints")
    _finish_beginning_anew(folder)


def finish_what_was_begun(folder: Path) -> None:
    """What a kill has left half done in a run folder: for whoever holds it, before all else."""
    finish_interrupted(folder / "checkpoints")
    _finish_beginning_anew(folder)


def _finish_beginning_anew(folder: Path) -> None:
    """All that is left to do once the checkpoints are put aside; before, nothing has begun."""
    directory, beginning = folder / "checkpoints", folder / ANEW
    if not beginning.exists():
        return
    if directory.exists():
        shutil.rmtree(beginning)
        return
    if recorded(beginning):
        for name in ("metrics.jsonl", "samples.jsonl", "snapshots", "tensorboard", "run.json"):
            _put_aside(folder / name)
        (beginning / "run.json").replace(folder / "run.json")
    beginning.rename(directory)


def how_to_go_on(step: int, resume: Resume) -> tuple[str, str]:
    """What to say on leaving, in English and in Chinese."""
    if resume == "weights":
        return (
            f"saved at update {step}; to go on: the same command, --resume-weights-only made "
            "--resume",
            f"已保存到第{step}次更新；要继续，请把同一条命令里的--resume-weights-only改成--resume",
        )
    return (
        f"saved at update {step}; to go on: the same command with --resume",
        f"已保存到第{step}次更新；要继续，请在同一条命令后加上--resume",
    )


def _put_aside(path: Path) -> None:
    """Give a file or folder, if it is there, a name that nothing has yet."""
    names = (path.with_name(f"{path.name}.before{n or ''}") for n in range(sys.maxsize))
    if path.exists():
        path.rename(next(name for name in names if not name.exists()))
