"""The queue, with a worker that does nothing but remember what it was asked."""

import asyncio
import selectors
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.decode.search import Hypothesis, Search, Sentence
from regard.errors import DataError
from regard.serve import batcher
from regard.serve.batcher import MUCH, QUIET, Batcher, work_of
from regard.serve.keys import Keys
from regard.serve.limits import Limits
from regard.serve.metrics import Metrics
from regard.serve.models import Models
from regard.serve.refusals import Refused
from regard.serve.service import Service, Wanted
from regard.serve.worker import WorkerDied

GREEDY = Search(beam=1)


class Pretended:
    """A worker that needs so long for a token, and dies of the tokens it cannot stand."""

    def __init__(self, seconds=0.0, poison=(), error=None):
        self.seconds, self.poison, self.error = seconds, poison, error
        self.ready = asyncio.Event()
        self.ready.set()
        self.batches, self.killed = [], 0

    async def ask(self, question, *arguments, on_part=None):
        if question != "search":
            return (question, *arguments)
        _, sentences, search = arguments
        self.batches.append((sentences, search))
        await asyncio.sleep(self.seconds * sum(len(one.ids) for one in sentences))
        if any(id in self.poison for one in sentences for id in one.ids):
            raise WorkerDied
        if self.error:
            raise self.error
        return [[Hypothesis(one.ids, 0.0, True)] for one in sentences]

    def kill(self):
        self.killed += 1


def run(main, worker=None, rows=10**6, **limits):
    """Run `main(batcher, worker)` beside a batcher."""

    async def both():
        pretended = worker or Pretended()
        pretended.ready = asyncio.Event()
        pretended.ready.set()
        made = Batcher(pretended, Limits(**limits), Metrics(), rows)
        running = asyncio.create_task(made.run())
        try:
            return await main(made, pretended)
        finally:
            running.cancel()

    return asyncio.run(both())


def some(*lengths, word=1):
    return [Sentence((word,) * length) for length in lengths]


def test_requests_that_wait_together_go_out_together_and_each_gets_its_own():
    async def main(queue, worker):
        asked = [some(n, n + 1, word=n) for n in range(1, 9)]
        found = await asyncio.gather(*(queue.search(0, one, GREEDY) for one in asked))
        for sentences, own in zip(asked, found, strict=True):
            assert [one.ids for one in sentences] == [best.ids for [best] in own]
        assert [len(sentences) for sentences, _ in worker.batches] == [16]
        assert queue.queue == []

    run(main)


def test_what_is_asked_in_another_way_goes_in_another_batch():
    async def main(queue, worker):
        wide = Search(beam=4)
        await asyncio.gather(
            queue.search(0, some(3), GREEDY),
            queue.search(0, some(4), wide),
            queue.search(1, some(5), GREEDY),
            queue.search(0, some(6), GREEDY),
        )
        lengths = [[len(one.ids) for one in sentences] for sentences, _ in worker.batches]
        assert sorted(lengths) == [[3, 6], [4], [5]]

    run(main)


def test_a_batch_is_bounded_and_a_short_request_does_not_wait_for_a_long_one():
    async def main(queue, worker):
        queue.pace[0, 1] = 0.0001
        order = []

        async def ask(name, sentences):
            await queue.search(0, sentences, GREEDY)
            order.append(name)

        long = asyncio.create_task(ask("long", some(*[50] * 40)))
        await asyncio.sleep(0)
        await asyncio.gather(ask("short", some(50)), long)
        assert order == ["short", "long"]
        sizes = [sum(map(work_of, sentences)) for sentences, _ in worker.batches]
        assert sum(sizes) == pytest.approx(41 * work_of(some(50)[0]))
        assert sizes[0] <= 500  # a twentieth of a second at this pace
        assert len(sizes) >= 4

    run(main, Pretended(0.0001), batch=0.05, queue_tokens=10_000)


def test_a_batch_has_no_more_hypotheses_than_the_engine_has_at_once():
    async def main(queue, worker):
        wide = Search(beam=4)
        asked = [queue.search(0, some(5, 5, 5), search) for search in [wide] * 5 + [GREEDY] * 5]
        await asyncio.gather(*asked)
        sizes = [(len(sentences), search.beam) for sentences, search in worker.batches]
        assert sizes == [(6, 4), (6, 4), (3, 4), (15, 1)]

    run(main, rows=25)


def test_nobody_starves_while_others_keep_coming():
    async def main(queue, worker):
        queue.pace[0, 1] = 0.002
        long = asyncio.create_task(queue.search(0, some(*[100] * 10, word=7), GREEDY))

        async def keep_coming():
            while not long.done():
                await queue.search(0, some(40), GREEDY)

        await asyncio.wait_for(asyncio.gather(long, *(keep_coming() for _ in range(8))), 10)
        shares = [sum(one.ids[0] == 7 for one in sentences) for sentences, _ in worker.batches]
        needed = next(n for n in range(1, 11) if sum(shares[:n]) == 10)
        assert min(shares[:needed]) >= 1

    run(main, Pretended(0.00001), batch=0.6)


def test_more_requests_than_fit_are_refused_at_once_and_told_when_to_come_again():
    async def main(queue, worker):
        asked = [asyncio.create_task(queue.search(0, some(5), GREEDY)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await queue.search(0, some(5), GREEDY)
        assert (refused.value.status, refused.value.code) == (429, "busy")
        assert refused.value.retry_after >= 1
        assert refused.value.message == (
            "the server has as much to do as it takes; ask again in 1 s"
        )
        assert len(await asyncio.gather(*asked)) == 4

    run(main, queue_requests=4)


def test_more_tokens_than_fit_are_refused_but_never_the_only_request():
    async def main(queue, worker):
        assert len(await queue.search(0, some(*[30] * 10), GREEDY)) == 10
        first = asyncio.create_task(queue.search(0, some(60), GREEDY))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="as much to do"):
            await queue.search(0, some(60), GREEDY)
        await first

    run(main, queue_tokens=100)


def test_what_would_not_be_done_in_time_is_refused_at_once():
    async def main(queue, worker):
        queue.pace[0, 1] = 0.01
        first = asyncio.create_task(queue.search(0, some(*[50] * 6), GREEDY))  # 3 s
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await queue.search(0, some(*[50] * 4), GREEDY)  # 2 s more
        assert refused.value.retry_after in (3, 4, 5)
        await queue.search(0, some(50), GREEDY, is_patient=True)
        await first

    run(main, Pretended(), deadline=5.0)


class Jumping(selectors.DefaultSelector):
    """Nothing is waited for: the clock jumps to when the next thing is due."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0.0
        return super().select(0)


def hurried(main, monkeypatch):
    """Run `main(loop)`, which takes only as long as there is something to compute."""
    clock = Jumping()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now
    monkeypatch.setattr(batcher, "time", SimpleNamespace(monotonic=loop.time))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))


@pytest.mark.parametrize("n", [20, 100])
def test_what_is_let_in_is_done_in_time_though_it_goes_half_as_fast_as_before(n, monkeypatch):
    """The pace was learned while it was quiet; then all come at once, and refusing them costs."""

    async def main(loop):
        worker, limits = Pretended(0.0008), Limits()
        queue = Batcher(worker, limits, Metrics())
        running = asyncio.create_task(queue.run())
        times, late, refused = [], [], []

        async def client(until):
            while loop.time() < until:
                started = loop.time()
                try:
                    async with asyncio.timeout(limits.deadline):
                        await queue.search(0, some(*[12] * n), GREEDY)
                    times.append(loop.time() - started)
                except TimeoutError:
                    late.append(started)
                except Refused:
                    refused.append(started)
                    await asyncio.sleep(0.2)

        async def load(n_clients, seconds):
            until = loop.time() + seconds
            await asyncio.gather(*(client(until) for _ in range(n_clients)))

        await load(1, 20.0)
        assert not refused
        worker.seconds *= 2
        times.clear()
        started = loop.time()
        await load(40, 30.0)
        most = (loop.time() - started) / (worker.seconds * 12 * n)  # that one can do in this time
        running.cancel()
        assert refused
        assert late == []
        assert len(times) > 0.9 * most

    hurried(main, monkeypatch)


def test_a_pace_so_slow_that_batches_are_of_the_fewest_is_learned_too(monkeypatch):
    async def main(loop):
        queue = Batcher(Pretended(0.02), Limits(), Metrics())
        queue.pace[0, 1] = 0.005  # so that a batch has no more than the fewest
        running = asyncio.create_task(queue.run())
        await queue.search(0, some(*[12] * 240), GREEDY)
        running.cancel()
        assert queue.pace[0, 1] == pytest.approx(0.02 * 12 / work_of(some(12)[0]), rel=0.05)

    hurried(main, monkeypatch)


def test_after_a_quarter_of_the_deadline_only_who_wants_little_is_let_in():
    async def main(queue, worker):
        queue.pace[0, 1] = 0.01
        long = asyncio.create_task(queue.search(0, some(*[50] * 6), GREEDY))  # 4.2 s of 2.5
        await asyncio.sleep(0)
        queue.check_room(MUCH)
        with pytest.raises(Refused, match="as much to do"):
            queue.check_room(MUCH + 1)
        with pytest.raises(Refused, match="as much to do"):
            await queue.search(0, some(50), GREEDY)
        await queue.search(0, some(40), GREEDY)
        await long
        queue.check_room(MUCH + 1)  # who would be the only one

    run(main, Pretended(), deadline=10.0)


def test_what_is_much_is_refused_before_it_is_split_unless_it_waits_elsewhere(monkeypatch):
    model = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"

    async def main(queue, worker):
        service = Service(Models([model]), limits=queue.limits, keys=Keys())
        service.lanes["quick"] = service.lanes["thorough"] = queue
        split = []
        monkeypatch.setattr(service, "_asked", lambda wanted, group: split.append(wanted) or [])
        queue.pace[0, 1] = 0.01
        long = asyncio.create_task(queue.search(0, some(*[50] * 6), GREEDY))
        await asyncio.sleep(0)
        much = Wanted(texts=["我喜欢。"] * 64 + ["我"])
        for wanted in (
            replace(much, texts=much.texts[:64]),
            replace(much, is_document=True),
            replace(much, is_part=True, terms={"我": "I"}),
            replace(much, is_part=True, prefix="I"),
        ):
            with suppress(ValueError):  # it was split into nothing
                await service.translate(wanted)
            assert split.pop() is wanted
        with pytest.raises(Refused, match="as much to do"):
            await service.translate(replace(much, is_part=True))
        assert split == []
        await long

    run(main, Pretended(), deadline=10.0)


def test_who_is_gone_has_no_sentence_in_the_next_batch():
    async def main(queue, worker):
        queue.pace[0, 1] = 0.001
        gone = asyncio.create_task(queue.search(0, some(*[100] * 20, word=9), GREEDY))
        await asyncio.sleep(0.01)  # its first batch runs
        gone.cancel()
        await queue.search(0, some(10), GREEDY)
        assert queue.queue == []
        assert sum(one.ids[0] == 9 for sentences, _ in worker.batches for one in sentences) < 10

    run(main, Pretended(0.0001), batch=0.5)


def test_those_whose_worker_died_are_asked_again_alone_and_the_murderer_is_refused():
    async def main(queue, worker):
        asked = [queue.search(0, some(3, 4, word=word), GREEDY) for word in (1, 2, 13)]
        first, second, third = await asyncio.gather(*asked, return_exceptions=True)
        assert [best.ids for [best] in first] == [(1,) * 3, (1,) * 4]
        assert [best.ids for [best] in second] == [(2,) * 3, (2,) * 4]
        assert isinstance(third, Refused)
        assert (third.status, third.code) == (500, "fault")
        assert third.message == "the server failed at this request; its log has more"
        assert len(worker.batches) == 4  # together, then each alone

    run(main, Pretended(poison=(13,)))


def test_a_worker_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(batcher, "HANGS", 0.05)

    async def main(queue, worker):
        with pytest.raises(Refused, match="the server failed"):
            await queue.search(0, some(5), GREEDY)
        assert worker.killed == 2

    run(main, Pretended(seconds=10))


def test_an_error_of_the_library_reaches_who_asked_and_another_is_kept_from_them():
    async def main(queue, worker):
        with pytest.raises(DataError, match="nothing to attend"):
            await queue.search(0, some(5), GREEDY)
        worker.error = RuntimeError("secret")
        with pytest.raises(Refused) as refused:
            await queue.search(0, some(5), GREEDY)
        assert "secret" not in refused.value.message

    run(main, Pretended(error=DataError("there is nothing to attend to in a blank text")))


def test_who_comes_just_after_others_finds_company_and_who_is_alone_does_not_wait():
    async def main(queue, worker):
        async def client(number):
            for _ in range(4):
                await queue.search(0, some(50), GREEDY)
                await asyncio.sleep(0.0005 * number)  # not all come at once

        await asyncio.gather(*map(client, range(8)))
        assert len(worker.batches) <= 6  # the first is one alone, then seven, then all together
        worker.seconds = 0.0
        for _ in range(2):
            await queue.search(0, some(50), GREEDY)
        started = asyncio.get_running_loop().time()
        await queue.search(0, some(50), GREEDY)
        assert asyncio.get_running_loop().time() - started < QUIET

    run(main, Pretended(0.0004))


def test_other_questions_take_their_turn():
    async def main(queue, worker):
        found = await asyncio.gather(
            queue.search(0, some(5), GREEDY), queue.ask("trace", 0, "x"), queue.ask("score", 1)
        )
        assert found[1:] == [("trace", 0, "x"), ("score", 1)]
        assert await queue.search(0, [], GREEDY) == []

    run(main)
