"""What the native API is asked and answers, as types; the OpenAPI description is made of them."""

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from regard.errors import DataError
from regard.serve.fields import shown, table_of
from regard.serve.refusals import Refused, missing, wrong


class Asking(BaseModel):
    """What every request may say of its languages and its model; what is left out is told."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    source: str = Field("", alias="from", description="Language; empty: told by the script.")
    target: str = Field("", alias="to", description="Language; empty: the one there is.")
    model: str = Field("", description="Name of a model; empty: the first that goes that way.")


class Translate(Asking):
    """Texts to translate."""

    text: str | list[str] = Field(description="A text, or a list of them.")
    beam: int | None = Field(None, ge=1, description="Hypotheses side by side; null: the model's.")
    nbest: int = Field(1, ge=1, description="How many translations of each text.")
    prefix: str = Field("", description="What each translation begins with.")
    terms: dict[str, str] = Field({}, description="Words of the source and what they are called.")
    alignments: bool = Field(False, description="Which piece comes from which.")
    log_probs: bool = Field(False, description="How probable each piece was.")
    stream: bool = Field(False, description="One text, greedily, as lines of JSON while it grows.")


class Pair(Asking):
    """A text and a translation of it; without one, the model's own."""

    text: str
    translation: str | None = None


class Score(Asking):
    """Texts and translations of them, as many."""

    text: str | list[str]
    translation: str | list[str]


class Attend(Pair):
    """All weights of a translation, or those of one head and what it computed with."""

    kind: Literal["cross", "encoder", "decoder"] | None = Field(
        None, description="Of one attention only, in float32; needs layer and head."
    )
    layer: int = Field(0, ge=0)
    head: int = Field(0, ge=0)
    vectors: bool = Field(False, description="Queries, keys and values of that head as well.")


class Trace(Asking):
    """A sentence whose search is told step by step."""

    text: str
    beam: int | None = Field(None, ge=1)
    prefix: str = ""


class Explained(BaseModel):
    """An error, in both languages."""

    code: str
    message: str
    message_zh: str
    field: str
    trace_id: str


class Failure(BaseModel):
    """What is answered instead."""

    error: Explained


A = TypeVar("A", bound=BaseModel)


async def asked(kind: type[A], request: Request) -> A:
    """The body of a request as the type it should have."""
    table = table_of(await request.body())
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise _refusal(error, table) from None


def described(kind: type[BaseModel]) -> dict[str, Any]:
    """The body of a request, for the OpenAPI description."""
    schema = kind.model_json_schema(by_alias=True)
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body}


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure} for status in (400, 403, 413, 415, 421, 429, 456, 503)
}


def _refusal(error: ValidationError, table: dict[str, Any]) -> Refused:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "body"
    if first["type"] == "missing":
        return missing(name)
    if first["type"] == "extra_forbidden":
        reason = DataError("there is no field {field} in this request", field=name[:50])
        return Refused(400, "unknown_field", reason, field=name[:50])
    return wrong(name[:50], shown(table.get(name)), first["msg"][:1].lower() + first["msg"][1:])
