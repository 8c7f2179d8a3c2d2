"""What every protocol does before it translates: whose key, how much, and what the log may know."""

from collections.abc import Sequence

from starlette.requests import Request

from regard.serve.fields import Fields
from regard.serve.keys import Owner
from regard.serve.service import Service

_SCHEMES = ("bearer", "deepl-auth-key", "token")
_NAMES = ("api_key", "auth_key", "token", "key")


def owner_of(service: Service, request: Request, fields: Fields) -> Owner:
    """Whose key came with the request, in whatever place its client puts it."""
    owner = service.keys.owner(_key(request, fields))
    if owner.is_known:
        request.scope["heard"].facts["key"] = owner.name
    return owner


def admit(service: Service, request: Request, owner: Owner, texts: Sequence[str]) -> None:
    """Count the request, or refuse it; its sizes are for the log, its texts only if asked for."""
    n_chars = sum(map(len, texts))
    facts = request.scope["heard"].facts
    facts.update(texts=len(texts), chars=n_chars)
    if service.logs_text:
        facts["text"] = list(texts)
    service.admit(owner, request.scope["address"], n_chars)


def base_of(request: Request) -> str:
    """The server's own address, as the client wrote it; it ends with a slash."""
    return str(request.base_url)


def _key(request: Request, fields: Fields) -> str | None:
    scheme, _, word = request.headers.get("authorization", "").partition(" ")
    if word.strip() and scheme.lower() in _SCHEMES:
        return word.strip()
    if key := request.headers.get("x-api-key"):
        return key
    return next((fields.text(name) for name in _NAMES if fields.has(name)), None)
