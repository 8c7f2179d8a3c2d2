"""Documents in the server's memory: how many, for how long, and what becomes of those that fail."""

import asyncio
from types import SimpleNamespace

import pytest

from regard.decode.results import Alternative
from regard.errors import DataError
from regard.serve.documents import Documents
from regard.serve.fields import File
from regard.serve.limits import Limits
from regard.serve.refusals import Refused
from regard.serve.service import Answer, Wanted

WANTED = Wanted(texts=[], source="zh", target="en")


class Pretended:
    """A service that says every text in capitals, unless it is to fail."""

    def __init__(self, failures=()):
        self.failures, self.asked = list(failures), []
        self.models = SimpleNamespace(
            directions=[("zh", "en")], way=lambda text, source, target: None
        )

    async def translate(self, wanted):
        self.asked.append(list(wanted.texts))
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return [
            Answer(f"<{text}>", "zh", "en", 100.0, "m", (Alternative(f"<{text}>", 0.0, True),))
            for text in wanted.texts
        ]


def run(main, service, **limits):
    return asyncio.run(main(Documents(Limits(**limits)), service))


async def ended(job):
    while job.status in ("queued", "translating"):
        await asyncio.sleep(0.005)
    return job


def test_a_document_goes_through_in_parts_and_is_handed_out_once():
    async def main(documents, service):
        lines = [f"第{n}行" for n in range(150)]
        job = await documents.take(service, File("a.txt", "\n".join(lines).encode()), WANTED)
        documents.start(service, job, WANTED)
        await ended(job)
        assert (job.status, job.n_left) == ("done", 0)
        assert [len(asked) for asked in service.asked] == [64, 64, 22]
        body = documents.download(job.id, is_once=True).body.decode()
        assert body == "\n".join(f"<{line}>" for line in lines)
        with pytest.raises(Refused) as refused:
            documents.download(job.id)
        assert refused.value.message == "there is no document here"

    run(main, Pretended())


def test_a_full_queue_is_waited_for(monkeypatch):
    monkeypatch.setattr("regard.serve.documents.PATIENCE", 0.01)
    busy = Refused(429, "busy", DataError("the glossary has no entries"))

    async def main(documents, service):
        job = await documents.take(service, File("a.txt", "我".encode()), WANTED)
        documents.start(service, job, WANTED)
        assert (await ended(job)).status == "done"
        assert len(service.asked) == 3

    run(main, Pretended([busy, busy, None]))


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (DataError("the glossary has no entries"), "the glossary has no entries"),
        (RuntimeError("secret"), "the server failed at this request; its log has more"),
        (
            Refused(500, "fault", DataError("the glossary has no entries")),
            "the glossary has no entries",
        ),
    ],
)
def test_a_document_that_fails_has_an_error_and_no_half_of_a_result(failure, error):
    async def main(documents, service):
        lines = "\n".join(f"第{n}行" for n in range(100))
        job = await documents.take(service, File("a.txt", lines.encode()), WANTED)
        documents.start(service, job, WANTED)
        assert ((await ended(job)).status, job.error) == ("error", error)
        with pytest.raises(Refused, match="there is no document here"):
            documents.download(job.id)

    run(main, Pretended([None, failure]))


def test_a_document_that_takes_too_long_is_ended():
    class Slow(Pretended):
        async def translate(self, wanted):
            await asyncio.sleep(10)

    async def main(documents, service):
        job = await documents.take(service, File("a.txt", "我".encode()), WANTED)
        documents.start(service, job, WANTED)
        assert ((await ended(job)).status, job.error) == ("error", "it was not done within 0.05 s")

    run(main, Slow(), document_deadline=0.05)


def test_documents_are_forgotten_in_time_and_bounded_together():
    async def main(documents, service):
        file = File("a.txt", ("我" * 500).encode())
        first = await documents.take(service, file, WANTED)
        await documents.take(service, file, WANTED)
        with pytest.raises(Refused) as refused:
            await documents.take(service, file, WANTED)
        assert (refused.value.status, refused.value.retry_after) == (429, 30)
        assert refused.value.message == (
            "the server has as many documents as it can hold; ask again"
        )
        await asyncio.sleep(0.1)
        with pytest.raises(Refused, match="there is no document here"):
            documents.get(first.id, first.key)
        await documents.take(service, file, WANTED)
        assert len(documents.all) == 1

    run(main, Pretended(), documents_bytes=3000, document_seconds=0.05)


def test_a_document_in_which_nothing_could_be_translated_is_none():
    async def main(documents, service):
        job = await documents.take(service, File("a.txt", "我".encode()), WANTED)
        with pytest.raises(DataError) as error:
            await documents.translate(service, job, WANTED)
        assert str(error.value) == "nothing in a.txt could be translated: endless"
        assert documents.all == {}

    class Endless(Pretended):
        async def translate(self, wanted):
            one = Alternative("x", 0.0, False)
            return [Answer("x", "zh", "en", 100.0, "m", (one,)) for _ in wanted.texts]

    run(main, Endless())
