"""The page for people: the files of page/, and a form that works without any script."""

import gzip
import mimetypes
from html import escape
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from regard.errors import RegardError, Word
from regard.serve.asking import admit, owner_of
from regard.serve.fields import fields_of
from regard.serve.languages import canonical
from regard.serve.refusals import Refused, not_found
from regard.serve.service import Service, Wanted

PAGE = Path(__file__).parent / "page"
VIEW = Path(__file__).parents[1] / "view" / "page"  # the panel of attention, at /page/view/
GUIDES = (Path(__file__).parent / "guide", Path(__file__).parents[3] / "docs")
"""Where the guide is: in an installed package, and in a checkout."""
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:; object-src 'none'"
)
HERE, SAID = "<!-- source -->", "<!-- translation -->"  # where the form's texts go


def router(service: Service) -> APIRouter:
    """The page's addresses; they come last, for they take whatever is left."""
    routes = APIRouter(include_in_schema=False)
    files, guides = _files(), _guides()
    deflated = {name: gzip.compress(content) for name, content in files.items()}

    @routes.get("/")
    async def index(request: Request) -> Response:
        service.lane("thorough")  # who opens the page will soon want to look inside
        return _index(files["index.html"])

    @routes.post("/")
    async def translate_form(request: Request) -> Response:
        """The form, sent by a browser without scripts."""
        fields = await fields_of(request)
        text, status = fields.text("text", ""), 200
        try:
            owner = owner_of(service, request, fields)
            admit(service, request, owner, [text])
            source, target = fields.text("from", ""), fields.text("to", "")
            source, target = (code if canonical(code) else "" for code in (source, target))
            [answer] = await service.translate(Wanted(texts=[text], source=source, target=target))
            said = answer.text
        except (Refused, RegardError) as error:
            said, status = str(error), error.status if isinstance(error, Refused) else 400
        return _index(files["index.html"], text, said, status)

    @routes.get("/page/{name:path}")
    async def file(request: Request, name: str) -> Response:
        # Only what was there at the start is there at all, so no name leads anywhere else.
        if name not in files:
            raise not_found(Word("page"))
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if kind.startswith("text/"):
            kind = f"{kind}; charset=utf-8"
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return _shown(files[name], kind)
        response = _shown(deflated[name], kind)
        response.headers["content-encoding"] = "gzip"
        return response

    @routes.get("/guide/{language}/{name}")
    async def guide(language: str, name: str) -> Response:
        """A page of the guide, as it was written."""
        if (page := guides.get(f"{language}/{name}")) is None:
            raise not_found(Word("page"))
        return _shown(page.read_bytes(), "text/plain; charset=utf-8")

    return routes


def _guides() -> dict[str, Path]:
    """Every page of the guide by its language and name."""
    return {
        f"{language}/{path.name}": path
        for folder in GUIDES
        for language in ("en", "zh")
        for path in sorted((folder / language).glob("*.md"))
    }


def _files() -> dict[str, bytes]:
    """Every file of the page by its name, read once."""
    return {
        prefix + path.relative_to(folder).as_posix(): path.read_bytes()
        for prefix, folder in (("", PAGE), ("view/", VIEW))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _index(page: bytes, text: str = "", said: str = "", status: int = 200) -> Response:
    """The page with texts in its form; they are text there, whatever they say."""
    before, _, after = page.decode().partition(HERE)
    between, _, end = after.partition(SAID)
    filled = before + escape(text) + between + escape(said) + end
    return _shown(filled.encode(), "text/html; charset=utf-8", status)


def _shown(content: bytes, kind: str, status: int = 200) -> Response:
    headers = {
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "vary": "accept-encoding",
    }
    return Response(content, status, headers, media_type=kind)
