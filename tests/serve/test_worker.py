"""The process that translates: asked, killed, replaced, and given up where it cannot be had."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from regard.bundle import open_bundle
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.search import Search, Sentence
from regard.errors import DataError, ModelError
from regard.serve import worker as module
from regard.serve.worker import Loading, Worker, WorkerDied

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
SENTENCES = [Sentence((30, 41, 52, 3)), Sentence((60, 3))]


def run(main, loading, lane="quick"):
    async def both():
        restarts = []
        worker = Worker(lane, loading, on_restart=lambda: restarts.append(1))
        running = asyncio.create_task(worker.run())
        try:
            return await asyncio.wait_for(main(worker, restarts), 60)
        finally:
            await worker.stop()
            await asyncio.wait_for(running, 10)

    return asyncio.run(both())


def test_a_worker_answers_as_the_engine_does_and_another_takes_its_place():
    expected = CTranslate2Engine(open_bundle(TATOEBA)).search(SENTENCES, Search(beam=2))

    async def main(worker, restarts):
        assert await worker.ask("search", 0, SENTENCES, Search(beam=2)) == expected
        with pytest.raises(DataError, match="outside the vocabulary"):
            await worker.ask("search", 0, [Sentence((10**6,))], Search(beam=1))
        first = worker.pid
        long = [Sentence((*range(30, 150), 3))] * 50
        asking = asyncio.create_task(worker.ask("search", 0, long, Search(beam=5)))
        await asyncio.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            await asking
        assert await worker.ask("search", 0, SENTENCES, Search(beam=2)) == expected
        assert worker.pid != first
        assert restarts == [1]
        with pytest.raises(RuntimeError, match="ValueError: sing"):
            await worker.ask("sing", 0)

    run(main, Loading((TATOEBA,)))


def test_a_model_that_cannot_be_loaded_is_the_error_of_the_whole(tmp_path):
    async def main(worker, restarts):
        while worker.failure is None:
            await asyncio.sleep(0.01)
        assert isinstance(worker.failure, ModelError)
        assert str(worker.failure) == f"there is no model directory {tmp_path / 'nothing'}"
        assert restarts == []

    run(main, Loading((tmp_path / "nothing",)))


def test_a_process_that_never_gets_ready_is_given_up(monkeypatch):
    monkeypatch.setitem(module.MODULES, "quick", "json")  # which has no models
    monkeypatch.setattr(module, "PAUSES", (0.0,))

    async def main(worker, restarts):
        while worker.failure is None:
            await asyncio.sleep(0.01)
        assert str(worker.failure) == (
            "the process that is to translate ended 3 times before it was ready"
        )
        assert restarts == [1, 1]

    run(main, Loading((TATOEBA,)))
