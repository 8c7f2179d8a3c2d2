"""`regard serve`: models behind HTTP, for the page and for the clients that people already have."""

import json
import logging
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from regard.cli.language import language

if TYPE_CHECKING:
    from regard.serve.gate import Doors
    from regard.serve.models import Models
    from regard.serve.service import Service

WORDS = {
    "en": {
        "loading": "loading {models} ...",
        "ready": "regard serves {ways} at {address}",
        "open": "warning: {host} is open to other machines, and no --api-key is set",
        "bye": "done",
    },
    "zh": {
        "loading": "正在载入{models}……",
        "ready": "regard正在提供{ways}：{address}",
        "open": "警告：{host}对其他机器开放，而没有设置--api-key",
        "bye": "已结束",
    },
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is on the command line."""

    model: tuple[Path, ...]
    host: str
    port: int
    api_keys: tuple[str, ...]
    keys: Path | None
    allow_host: tuple[str, ...]
    allow_origin: tuple[str, ...]
    trust_proxy: tuple[str, ...]
    rate: int
    char_rate: int
    max_chars: int
    max_texts: int
    deadline: float
    dtype: Literal["auto", "float32", "int8"]
    device: str
    lean: bool
    log_text: bool
    quiet: bool
    run: tuple[Path, ...]

    def service(self, models: "Models") -> "Service":
        """What answers, within these limits."""
        from regard.serve.keys import keys_of
        from regard.serve.limits import Limits
        from regard.serve.service import Service

        limits = Limits(
            requests_per_minute=self.rate,
            chars_per_minute=self.char_rate,
            chars=self.max_chars,
            texts=self.max_texts,
            deadline=self.deadline,
        )
        return Service(
            models,
            limits=limits,
            keys=keys_of(self.api_keys, self.keys),
            device=self.device,
            dtype=self.dtype,
            logs_text=self.log_text,
            is_lean=self.lean,
            runs=self.run,
        )

    def doors(self, is_own: bool) -> "Doors":
        """Who is let in; a server of this machine alone answers to no other name."""
        from regard.serve.gate import Doors

        own = ("localhost", "127.0.0.1", "[::1]", self.host)
        names = {name.lower() for name in (*self.allow_host, *own)}
        return Doors(
            hosts=names if is_own or self.allow_host else (),
            origins=self.allow_origin,
            proxies=self.trust_proxy,
        )


@click.command()
@click.argument("model", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", help="Where to listen; 0.0.0.0 is open to others.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="0: any that is free.")
@click.option("--api-key", "api_keys", multiple=True, envvar="REGARD_API_KEY", metavar="KEY",
              help="Needed to ask, if set; may be repeated. Also $REGARD_API_KEY.")  # fmt: skip
@click.option("--keys", type=click.Path(path_type=Path), metavar="FILE",
              help="Keys as sha256, one a line, maybe with a name and characters.")  # fmt: skip
@click.option("--allow-host", multiple=True, metavar="NAME",
              help="A name this server has beside its address, as behind a proxy.")  # fmt: skip
@click.option("--allow-origin", multiple=True, metavar="URL",
              help="A site whose pages may ask this server.")  # fmt: skip
@click.option("--trust-proxy", multiple=True, metavar="IP",
              help="A proxy whose X-Forwarded-For is believed.")  # fmt: skip
@click.option("--rate", type=click.IntRange(0), default=0, metavar="N",
              help="Requests a minute of one key or address; 0: any.")  # fmt: skip
@click.option("--char-rate", type=click.IntRange(0), default=0, metavar="N",
              help="Characters a minute of one key or address; 0: any.")  # fmt: skip
@click.option("--max-chars", type=click.IntRange(1, 100_000), default=5000,
              help="Characters of one text.")  # fmt: skip
@click.option("--max-texts", type=click.IntRange(1, 1000), default=64,
              help="Texts of one request.")  # fmt: skip
@click.option("--deadline", type=click.FloatRange(0.1, 600), default=8.0, metavar="SECONDS",
              help="After which a request is answered with 503.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["auto", "float32", "int8"]), default="auto",
              help="int8 is faster on a CPU and nearly as good.")  # fmt: skip
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--lean", is_flag=True,
              help="Load torch when it is first needed, not before: less memory.")  # fmt: skip
@click.option("--log-text", is_flag=True, help="Write the texts into the log, too.")
@click.option("--run", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
              help="A training run to watch on the page, with its snapshots.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Log errors only, and no requests.")
def command(**options: Any) -> None:
    """Serve models over HTTP, to a page and to translation clients.

    Without a model, the one that comes with regard. Listens on this machine alone unless --host
    says otherwise. Ready when GET /readyz answers 200; SIGTERM lets it finish what is in flight.
    """
    from regard.decode.translator import BUNDLED
    from regard.serve.models import Models
    from regard.serve.protocols.runs import snapshots_of
    from regard.serve.run import listening, serve

    asked, words = Options(**options), WORDS[language()]
    kept = [place for run in asked.run for place in snapshots_of(run)]
    models = Models((*(asked.model or (BUNDLED,)), *kept))
    service = asked.service(models)
    door = listening(asked.host, asked.port)
    is_own = door.getsockname()[0] in ("127.0.0.1", "::1")
    if not is_own and not service.keys.owners:
        click.echo(words["open"].format(host=asked.host), err=True)
    _log_to_stderr(asked.quiet)
    ways = ", ".join(" → ".join(way) for way in models.directions) or models.all[0].name
    host = f"[{asked.host}]" if ":" in asked.host else asked.host
    address = f"http://{host}:{door.getsockname()[1]}"
    click.echo(words["loading"].format(models=", ".join(m.name for m in models.all)), err=True)
    ended = serve(
        service,
        asked.doors(is_own),
        door,
        on_ready=lambda: click.echo(words["ready"].format(ways=ways, address=address)),
    )
    click.echo(words["bye"], err=True)
    if ended == signal.SIGINT:
        raise KeyboardInterrupt


def _log_to_stderr(quiet: bool) -> None:
    """A line of JSON for each request and each fault."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (
        ("regard.serve", logging.ERROR if quiet else logging.INFO),
        ("uvicorn", logging.CRITICAL),  # what it has to say is said better here
        ("asyncio", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps(facts)
