"""A request that is not answered: a status, a code for programs, a sentence for people."""

from regard.errors import DataError, RegardError, ResourceError

STATUS = {"ConfigError": 400, "DataError": 400, "ModelError": 400, "ResourceError": 503}
"""What a refusal from deeper down, by the name of its class, is over HTTP."""


class Refused(Exception):  # noqa: N818 (it is an answer)
    """Why, in both languages; `field` names what is wrong, `retry_after` is in whole seconds."""

    def __init__(
        self, status: int, code: str, reason: RegardError, *, field: str = "", retry_after: int = 0
    ) -> None:
        super().__init__(str(reason))
        self.status, self.code, self.reason = status, code, reason
        self.field, self.retry_after = field, retry_after

    @property
    def message(self) -> str:
        """The sentence in English, as the other protocols have it."""
        return self.reason.in_language("en")

    @property
    def message_zh(self) -> str:
        """The sentence in Chinese."""
        return self.reason.in_language("zh")


def refusal_of(error: RegardError) -> Refused:
    """An error of the library as an answer to a client."""
    return Refused(STATUS[type(error).__name__], _code(type(error).__name__), error)


def missing(field: str) -> Refused:
    """A field that has to be there and is not."""
    reason = DataError("the request has no {field}; it is needed", field=field)
    return Refused(400, "missing", reason, field=field)


def wrong(field: str, shown: str, right: str) -> Refused:
    """A field whose value is not of its kind."""
    reason = DataError(
        "{field} = {value} is not right; it must be {right}", field=field, value=shown, right=right
    )
    return Refused(400, "wrong_value", reason, field=field)


def too_many(field: str, found: int, most: int) -> Refused:
    """More than is taken in one request."""
    reason = DataError(
        "{field} is {found}, but at most {most} are taken in one request",
        field=field,
        found=found,
        most=most,
    )
    return Refused(400, "too_many", reason, field=field)


def fault_inside() -> Refused:
    """A fault of the server; what it was stands in its log, under the trace id."""
    reason = ResourceError("the server failed at this request; its log has more")
    return Refused(500, "fault", reason)


def not_found(what: str) -> Refused:
    """Nothing is there."""
    return Refused(404, "not_found", DataError("there is no {what} here", what=what))


def _code(kind: str) -> str:
    return {"ConfigError": "wrong_setting", "DataError": "wrong_text"}.get(kind, "cannot")
