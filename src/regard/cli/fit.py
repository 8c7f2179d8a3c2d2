"""One run from text to model: where data, network, trainer, search and scores are joined."""

import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from regard.bundle import Bundle
from regard.cli.board import TensorBoard
from regard.cli.ending import last_words
from regard.cli.judge import Judge, dev_line, validation
from regard.cli.keep import Saving, final_weights, snapshots, write_model
from regard.cli.language import language
from regard.cli.past import (
    Resume,
    begin_anew,
    check_output,
    finish_what_was_begun,
    how_to_go_on,
    past_of,
)
from regard.cli.prepare import (
    prepared_data,
    source_weights,
    tell_of_data,
    tell_of_languages,
)
from regard.config import Config
from regard.data.feed import Batches, Place
from regard.data.prepare import (
    Prepared,
    nothing_to_train_on,
    opened,
    text_print,
    vocabulary_print,
)
from regard.data.workers import helped
from regard.decode.ensemble import Network
from regard.errors import ConfigError
from regard.model.build import build_model
from regard.model.weights import load_weights
from regard.train.allocator import keep_freed_memory
from regard.train.average import RunningAverage
from regard.train.checkpoint import Checkpoint
from regard.train.folder import folder_of, locked, record, recorded, spread
from regard.train.leaving import SAID, Leaving, listening
from regard.train.log import Log
from regard.train.memory import fitting_tokens, memory_told
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.parallel import Parallel, others_told
from regard.train.precision import Precision, compile_whole, is_compiled
from regard.train.state import TrainState
from regard.train.trainer import Trainer

INTERRUPTED = 130


def run(
    config: Config,
    output: Path,
    *,
    resume: Resume = "no",
    source: Bundle | None = None,
    wants_board: bool = False,
) -> int:
    """Prepare, fit, save; the exit code."""
    folder = folder_of(output)
    check_output(output, folder)
    if not config.data.train and config.data.task == "none":
        raise nothing_to_train_on()
    parallel = Parallel(config.train.parallel, config.train.device)
    if resume == "weights" and parallel.is_restart:
        raise ConfigError(
            "a process has died, and --resume-weights-only would begin once more; if the run had "
            "begun, go on with --resume, and if it had not, give the same command again"
        )
    if parallel.device.type == "cpu":
        keep_freed_memory()
    try:
        with ExitStack() as held, others_told(), memory_told(config.train.tokens):
            parallel.first_alone(lambda: held.enter_context(locked(folder)))
            code = _Run(config, output, folder, parallel, resume, source, wants_board).go()
    finally:
        parallel.leave()
    return parallel.end(code)


class _Run:
    """What the steps of a run need of one another."""

    def __init__(
        self,
        config: Config,
        output: Path,
        folder: Path,
        parallel: Parallel,
        resume: Resume,
        source: Bundle | None,
        wants_board: bool,
    ) -> None:
        self.started = time.monotonic()
        self.config, self.output, self.folder = config, output, folder
        self.parallel, self.resume, self.source = parallel, resume, source
        self.precision = Precision(config.train.precision, parallel.device)
        boards: list[TensorBoard] = []
        if wants_board:
            parallel.first_alone(lambda: boards.append(TensorBoard(folder / "tensorboard")))
        self.log = Log(
            folder / "metrics.jsonl",
            config.train.steps,
            language=language(),
            board=boards[0] if boards else None,
            is_quiet=not parallel.is_first,
        )
        self.parallel.first_alone(lambda: finish_what_was_begun(folder))
        self.past = past_of(folder, resume, source)
        self.vocabulary: str | None = None  # what it is, once that is known
        self.checkpoint = self._begin()
        self.prepared = self._prepare()

    def go(self) -> int:
        """Train, and leave the model behind."""
        network = self._network()
        if self.resume == "weights" and self.checkpoint is not None:
            checkpoint = self.checkpoint
            self.parallel.first_alone(lambda: begin_anew(self.folder, checkpoint, self._facts()))
        tokens = self._tokens(network)
        trainer = self._trainer(network, tokens)
        with listening(lambda: self.log.say_amid(*SAID)) as leaving, helped():
            judge = self._judge(leaving) if self.parallel.is_first else None
            leaves = self._fit(trainer, judge, leaving)
        if leaves:
            self.log.say(*how_to_go_on(trainer.state.step, self.resume))
            code = INTERRUPTED if leaving.signal == signal.SIGINT else 0
        else:
            self._finish(trainer, judge)
            code = 0
        self.parallel.wait()  # a rank that leaves while another still sends may be torn down
        return code

    def _begin(self) -> Checkpoint | None:
        """What to go on from; every rank reads it, the first one asks whether it may be."""

        def ask() -> None:
            now = self._facts()
            self.past.ask({**now, "ranks": self.parallel.ranks}, self.log)
            if self.resume != "weights":
                record(self.folder, now)

        self.parallel.first_alone(ask)
        checkpoint = self.past.checkpoint(self.log)
        self.vocabulary = self.past.vocabulary if checkpoint is not None else None
        return checkpoint

    def _facts(self) -> dict[str, Any]:
        return self.past.facts(self.config, self._text, self.parallel, self.vocabulary)

    @property
    def _decode(self) -> dict[str, Any] | None:
        """How the model it began with is to be asked."""
        return self.past.origin.get("decode")

    @cached_property
    def _text(self) -> str:
        return text_print(self.config.data, self.config.train.seed)

    def _prepare(self) -> Prepared:
        """The dataset: made by the first rank, found by the others."""
        place, found = self.folder / "data", []

        def make() -> None:
            found.append(prepared_data(self.config, place, self.source, vocabulary=self.vocabulary))
            self.vocabulary = vocabulary_print(place)
            if self.resume != "weights":
                record(self.folder, self._facts())
            is_new = not self.past.goes_on
            tell_of_data(found[0], self.config.data, self.log, is_new=is_new)
            if is_new:  # it cannot be told on the way
                tell_of_languages(found[0], self.source, self.log)

        self.parallel.first_alone(make)
        return found[0] if found else opened(self.config.data, place, seed=self.config.train.seed)

    def _network(self) -> Network:
        """The network as it begins: fresh, with another model's weights, or a checkpoint's."""
        torch.manual_seed(self.config.train.seed)
        network = self._empty_network()
        if self.checkpoint is not None:
            load_weights(network, self.checkpoint.weights)
        elif self.source is not None:
            load_weights(network, source_weights(self.source, self.config.model))
        n_parameters = sum(p.numel() for p in network.parameters())
        precision, device = self.precision, self.parallel.device
        self.log.say(
            f"{n_parameters:,} parameters, {precision}, {device}",
            f"{n_parameters:,}个参数，{precision}，{device}",
        )
        return network.to(self.parallel.device)

    def _empty_network(self) -> Network:
        vocabs = self.prepared.src_tokenizer.vocab, self.prepared.tgt_tokenizer.vocab
        return build_model(self.config.model, len(vocabs[0]), len(vocabs[1]))

    def _objective(self, network: Network) -> Objective:
        pad = self.prepared.tgt_tokenizer.vocab.pad
        train = self.config.train
        return Objective(network, pad=pad, smoothing=train.label_smoothing, r_drop=train.r_drop)

    def _tokens(self, network: Network) -> int:
        """The batch size, found out if the settings leave it open, and then written down."""
        tokens = self.config.train.tokens
        if tokens != "auto":
            return tokens
        found = 0
        if self.parallel.is_first:
            before = recorded(self.folder)
            known = before["config"]["train"]["tokens"] if before else "auto"
            if known == "auto":
                known = fitting_tokens(self._try_update(network), self.parallel.device)
            found = int(known)
        found = int(self.parallel.agree(torch.tensor(found, device=self.parallel.device)))
        self.config = replace(self.config, train=replace(self.config.train, tokens=found))
        if self.parallel.is_first:
            record(self.folder, self._facts())
        setting = f"train.tokens = {found}"
        self.log.say(f"{setting} fits this machine", f"{setting}适合这台机器")
        return found

    def _try_update(self, network: Network) -> Any:
        """Forward and backward of the batch that holds the longest pair."""

        def try_update(tokens: int) -> None:
            batches = self._batches(tokens)
            plan = batches.plan(0)
            longest = int((batches.planned[0] + batches.planned[1]).argmax())
            at = next(i for i in range(len(plan)) if longest in plan.batch(i))
            batch = batches.batch(Place(0, at // self.parallel.ranks)).to(self.parallel.device)
            network.train()
            self.precision.narrow(network)  # as the trainer does: what it tries is what will be
            try:
                with self.precision.autocast():
                    loss = self._objective(network)(batch)
                loss.backward()
            finally:
                network.zero_grad(set_to_none=True)

        return try_update

    def _batches(self, tokens: int) -> Batches:
        settings = self.config.train
        return Batches(
            self.prepared.dataset,
            self.prepared.src_tokenizer,
            self.prepared.tgt_tokenizer,
            kind=settings.batching,
            tokens=tokens,
            seed=settings.seed,
            rank=self.parallel.rank,
            ranks=self.parallel.ranks,
            sampled=self.config.data.sampled,
            max_len=self.config.model.max_len,
        )

    def _trainer(self, network: Network, tokens: int) -> Trainer:
        settings, checkpoint, ranks = self.config.train, self.checkpoint, self.parallel.ranks
        began = self.past.began(ranks)
        accumulate = spread(settings.accumulate, began, ranks)
        state = checkpoint.state if checkpoint is not None else TrainState()
        place = state.place.among(ranks, before=state.ranks or began)
        objective = self._objective(network)
        if is_compiled(settings.compile, self.parallel.device, settings.batching):
            is_alone = ranks == 1 and accumulate == 1
            compile_whole(objective, self.parallel.device, is_replayed=is_alone)
        call = self.parallel.wrap(objective)
        trainer = Trainer(
            objective,
            self._batches(tokens).after(place, workers=settings.workers),
            make_optimizer(network.parameters(), settings.lr),
            make_schedule(settings.schedule, settings.lr, settings.warmup, settings.steps),
            call=call,
            accumulate=accumulate,
            clip=settings.clip,
            seed=settings.seed,
            parallel=self.parallel,
            precision=self.precision,
            average=RunningAverage(network, settings.ema) if settings.ema else None,
            tell_split=lambda n_tokens: self.log.warn(
                f"a batch of {n_tokens:,} target tokens does not fit in memory; such are split",
                f"含{n_tokens:,}个目标词元的批次放不进内存；这样的批次将拆开",
            ),
        )
        if checkpoint is not None:
            trainer.restore(checkpoint)
        trainer.state.ranks = ranks
        return trainer

    def _judge(self, leaving: Leaving) -> Judge:
        return Judge(
            self._empty_network(),
            self.prepared,
            self.precision,
            longest=self.config.model.max_len,
            is_leaving=lambda: leaving.is_wanted,
        )

    def _fit(self, trainer: Trainer, judge: Judge | None, leaving: Leaving) -> bool:
        """Whether it was left before its end."""
        settings, state = self.config.train, trainer.state
        save = Saving(self.folder / "checkpoints", settings, self.log, saved=state)
        validate = validation(judge, self.log, metric=settings.metric, patience=settings.patience)

        def leave(trainer: Trainer) -> None:
            trainer.wants_to_stop = trainer.wants_to_stop or trainer.is_asked_to_stop()

        def is_asked() -> bool:  # after every update, where a hook would wait for the GPU
            self.log.count(state.step)
            return all_leave(self.parallel, leaving)

        trainer.is_asked_to_stop = is_asked
        trainer.hooks = [
            (settings.log_every, self.log.progress),
            (settings.log_every, save.look),
            (settings.validate_every, validate),
            (settings.validate_every, leave),  # whoever asks while it validates waits no more
            *snapshots(
                self.folder / "snapshots", self.config, self.prepared, self.log, self._decode
            ),
            (settings.save_every, save),  # last: what a kill before it cuts short is done again
            (settings.validate_every, save),
        ]
        has_stopped = settings.patience and state.stale >= settings.patience  # of itself
        if has_stopped or self.past.is_model_wanted(self.config):
            return all_leave(self.parallel, leaving)
        if self.checkpoint is not None and state.step:
            self.log.say(f"going on from update {state.step}", f"从第{state.step}次更新继续")
        self.log.start(state.step, state.n_tokens)
        try:
            is_last = state.step == settings.steps
            is_due = state.step > 0 and (is_last or state.step % settings.validate_every == 0)
            if is_due and state.score_step != state.step:
                for action in (validate, leave, save):  # the run was stopped before it could
                    action(trainer)
            trainer.fit(settings.steps)
            leaves = all_leave(self.parallel, leaving)
            if leaves:
                save(trainer)
            save.finish()
        finally:
            save.close()
            self.log.stop()
        return leaves

    def _finish(self, trainer: Trainer, judge: Judge | None) -> None:
        settings = self.config.train
        if judge is None:
            trainer.weights()  # this rank's share of what the first asks for
            return
        directory = self.folder / "checkpoints"
        weights, chosen, chinese = final_weights(directory, settings, trainer, judge)
        scores, beam = judge.best_scores(weights, settings.metric)
        if scores:
            lines = dev_line(scores)
            self.log.say(f"{chosen}; beam {beam}; {lines[0]}", f"{chinese}；束宽{beam}；{lines[1]}")
        write_model(
            self.output,
            self.config,
            self.prepared,
            weights,
            trainer.state,
            chosen=(chosen, chinese),
            scores=scores,
            beam=beam,
            signature=judge.signature,
            decode=self._decode,
        )
        seconds = time.monotonic() - self.started
        self.log.say(*last_words(self.prepared, self.output, self.folder, seconds))


def all_leave(parallel: Parallel, leaving: Leaving) -> bool:
    """Whether any rank was asked to leave: all leave after the same update.

    What counts is what all were told, not what this rank has heard since it told them.
    """
    if parallel.ranks == 1:
        return leaving.is_wanted
    asked = float(parallel.total(torch.tensor(float(leaving.is_wanted), device=parallel.device)))
    if asked:
        leaving.signal = leaving.signal or signal.SIGTERM
    return bool(asked)
