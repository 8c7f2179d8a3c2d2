"""What other protocols' requests may say, for the OpenAPI description; the code reads more."""

from collections.abc import Mapping, Sequence
from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0}
FLAG: dict[str, Any] = {"type": "boolean"}


def takes(fields: Mapping[str, Any], needed: Sequence[str]) -> dict[str, Any]:
    """A body with these fields, as JSON or as a form."""
    schema = {"type": "object", "properties": dict(fields), "required": list(needed)}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {k: {"schema": schema} for k in kinds}}}


def choice(*values: str) -> dict[str, Any]:
    """One of some words."""
    return {"type": "string", "enum": list(values)}
