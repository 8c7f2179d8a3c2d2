"""DeepL's documents: one is uploaded, asked after, and downloaded once."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from regard.errors import ResourceError
from regard.serve.asking import admit, owner_of
from regard.serve.documents import Documents
from regard.serve.fields import fields_of
from regard.serve.glossaries import Glossaries
from regard.serve.protocols.deepl import wanted_of
from regard.serve.refusals import Refused
from regard.serve.service import Service


def router(service: Service, documents: Documents, glossaries: Glossaries) -> APIRouter:
    """Their addresses."""
    routes = APIRouter(prefix="/v2/document", tags=["deepl"])

    @routes.post("")
    async def upload(request: Request) -> dict[str, str]:
        """Take a document and begin to translate it."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        file = fields.file("file")
        wanted = wanted_of(fields, owner, glossaries, [])
        job = await documents.take(service, file, wanted)
        admit(service, request, owner, job.texts)
        documents.start(service, job, wanted_of(fields, owner, glossaries, job.texts))
        return {"document_id": job.id, "document_key": job.key}

    @routes.get("/{document_id}")
    @routes.post("/{document_id}")
    async def status(request: Request, document_id: str) -> dict[str, Any]:
        """How far it is."""
        fields = await fields_of(request)
        owner_of(service, request, fields)
        job = documents.get(document_id, fields.text("document_key"))
        table: dict[str, Any] = {"document_id": job.id, "status": job.status}
        if job.status == "translating":
            table["seconds_remaining"] = 5
        if job.status == "done":
            table.update(billed_characters=job.n_chars, untranslated=job.n_left)
        if job.status == "error":
            table["error_message"] = job.error
        return table

    @routes.get("/{document_id}/result")
    @routes.post("/{document_id}/result")
    async def result(request: Request, document_id: str) -> Response:
        """The translation, once."""
        fields = await fields_of(request)
        owner_of(service, request, fields)
        job = documents.get(document_id, fields.text("document_key"))
        if job.status in ("queued", "translating"):
            reason = ResourceError("the document is not translated yet; ask again")
            raise Refused(503, "not_ready", reason, retry_after=5)
        return documents.download(job.id, is_once=True)

    return routes
