"""Documents that are translated whole: taken, translated beside the other requests, and handed out.

They live in memory alone, within a bound, and for a time: nothing of them is left on a disk, and
after a kill nothing is left at all. A document that fails has an error and no half of a result.
"""

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

from starlette.responses import Response

from regard.decode.results import Translation
from regard.document.document import SUFFIXES, Document, Translated, format_of, open_document
from regard.errors import ConfigError, DataError, RegardError, ResourceError, Word
from regard.serve.beside import Beside
from regard.serve.fields import File
from regard.serve.languages import TRADITIONAL, canonical
from regard.serve.limits import Limits
from regard.serve.refusals import Refused, fault_inside, not_found
from regard.serve.service import Answer, Service, Wanted

log = logging.getLogger("regard.serve")

FORMATS = tuple(SUFFIXES)
CHUNK = 64  # sentences that go into the queue at a time, so that others have their turn
PATIENCE = 1.0  # seconds before a document asks again for a place in a full queue

Status = Literal["queued", "translating", "done", "error"]


@dataclass(eq=False)
class Job:
    """A document on its way."""

    name: str
    document: Document
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    came: float = field(default_factory=time.monotonic)
    status: Status = "queued"
    result: bytes = b""
    n_left: int = 0  # texts in it that could not be translated and stand there as they were
    error: str = ""

    @property
    def texts(self) -> list[str]:
        """All that is to be translated."""
        return [source for unit in self.document.units for source in unit.sources]

    @property
    def n_chars(self) -> int:
        """Characters of it."""
        return sum(map(len, self.texts))

    @property
    def n_bytes(self) -> int:
        """What is kept of it, about."""
        return 4 * len(self.document.coded.text) + len(self.result)


class Documents:
    """All documents, by their ids."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.all: dict[str, Job] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def take(self, service: Service, file: File, wanted: Wanted) -> Job:
        """Keep a new document, or refuse it: for what it is, or because there is no room."""
        self._forget_old()
        if sum(one.n_bytes for one in self.all.values()) > self.limits.documents_bytes:
            full = ResourceError("the server has as many documents as it can hold; ask again")
            raise Refused(429, "busy", full, retry_after=30)
        service.models.way("", wanted.source, wanted.target)
        job = Job(file.name, await asyncio.to_thread(_opened, service, file, wanted))
        self.all[job.id] = job
        return job

    def start(self, service: Service, job: Job, wanted: Wanted) -> None:
        """Translate it beside all else."""
        task = asyncio.get_running_loop().create_task(self._kept(service, job, wanted))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def translate(self, service: Service, job: Job, wanted: Wanted) -> None:
        """Translate it while somebody waits; what fails is forgotten."""
        try:
            await _translate(service, job, wanted)
        finally:
            if job.status != "done":
                self.all.pop(job.id, None)

    def get(self, id: str, key: str) -> Job:
        """A document, for who has its key."""
        self._forget_old()
        job = self.all.get(id)
        if job is None or not hmac.compare_digest(job.key.encode(), key.encode()):
            raise not_found(Word("document"))
        return job

    def download(self, id: str, *, is_once: bool = False) -> Response:
        """The result; where it is handed out once, it is then forgotten."""
        self._forget_old()
        job = self.all.get(id)
        if job is None or job.status != "done":
            raise not_found(Word("document"))
        if is_once:
            del self.all[id]
        name = quote(job.name, safe="")
        return Response(
            job.result,
            media_type="application/octet-stream",  # never shown as a page of this server
            headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
        )

    async def _kept(self, service: Service, job: Job, wanted: Wanted) -> None:
        """Translate it; whatever happens is written down."""
        job.status = "translating"
        try:
            async with asyncio.timeout(self.limits.document_deadline):
                await _translate(service, job, wanted)
        except (Refused, RegardError) as error:
            job.status, job.error = "error", str(error)
        except TimeoutError:
            seconds = self.limits.document_deadline
            job.status, job.error = "error", f"it was not done within {seconds:g} s"
        except Exception:
            log.exception("fault", extra={"facts": {"document": job.id}})
            job.status, job.error = "error", fault_inside().message

    def _forget_old(self) -> None:
        now = time.monotonic()
        for id, one in list(self.all.items()):
            if now - one.came > self.limits.document_seconds:
                del self.all[id]


def _opened(service: Service, file: File, wanted: Wanted) -> Document:
    kind = format_of(file.name, file.content)
    if kind is None:
        raise Refused(
            400,
            "format",
            ConfigError(
                "{name} is no document that can be translated; these can: {known}",
                name=file.name[:100],
                known=", ".join(FORMATS),
            ),
            field="file",
        )
    source, target = (canonical(code) for code in (wanted.source, wanted.target))
    source, target = ("zh" if code == TRADITIONAL else code for code in (source, target))
    ways = service.models.directions
    return open_document(
        file.content, kind, ways, src_lang=source, tgt_lang=target, file=file.name[:100]
    )


async def _translate(service: Service, job: Job, wanted: Wanted) -> None:
    """Fill in the result; the document room asks for sentences from a thread of its own."""
    beside = Beside(asyncio.get_running_loop())
    document = job.document
    own = replace(
        wanted, source=wanted.source or document.direction[0], wants_alignment=True,
        is_document=True,
    )  # fmt: skip

    def translate(sentences: list[str]) -> list[Translation]:
        answers = beside.wait(_patiently(service, own, sentences))
        return [
            Translation(sentence, answer.source, answer.target, answer.alternatives)
            for sentence, answer in zip(sentences, answers, strict=True)
        ]

    def filled() -> Translated:
        return document.filled(document.outcomes(document.units, translate))

    done: Translated = await beside.run(filled)
    if done.left and len(done.left) == done.n_units:
        raise DataError(
            "nothing in {file} could be translated: {reason}",
            file=job.name[:100],
            reason=done.left[0].reason,
        )
    job.result, job.n_left, job.status = done.content, len(done.left), "done"


async def _patiently(service: Service, wanted: Wanted, texts: Sequence[str]) -> list[Answer]:
    """The texts, some at a time; a full queue is waited for."""
    answers: list[Answer] = []
    while len(answers) < len(texts):
        some = replace(wanted, texts=list(texts[len(answers) : len(answers) + CHUNK]))
        try:
            answers += await service.translate(some)
        except Refused as refused:
            if refused.code != "busy":
                raise
            await asyncio.sleep(PATIENCE)
    return answers
