"""Shards on a Ray cluster: a Ray Data job of a few readers and one model for each worker.

    shards -> a few readers -> chunks -> workers (a CPU or a GPU each) -> this process, which writes

Ray keeps the chunks until they are said: those of a worker that is lost go to it when it has been
started again, or to another. The model travels with the job, so that only regard must be installed
on the machines; what is read must be seen by all of them, what is written by this one alone.
"""

import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import __version__
from regard.cli.bulk import chunk_size
from regard.cli.language import language
from regard.cli.shards.chunks import Chunk, chunks_of, packed, saying
from regard.cli.shards.job import Shard
from regard.errors import ConfigError, RegardError, ResourceError
from regard.storage import sha256, written_whole

if TYPE_CHECKING:
    from regard.cli.translate import Options

PATIENCE = 30.0  # seconds to wait for a cluster to answer
SILENCE = 1800.0  # seconds without a chunk, after which something is wrong with all workers
AHEAD = 2  # chunks that a worker has at hand
READERS = 16  # workers that one reader keeps busy


@dataclass(frozen=True)
class Work:
    """All that another machine must know."""

    shards: Sequence[Shard]
    size: int  # lines of a chunk
    asked: "Options"
    terms: Mapping[str, str]
    models: Sequence[tuple[str, str]]  # where each lies here, and the sha256 of its manifest
    files: Any  # of the models, kept by Ray
    language: str
    version: str


def said_on_cluster(
    shards: Sequence[Shard],
    asked: "Options",
    terms: Mapping[str, str],
    models: Sequence[Path],
) -> Generator[Chunk]:
    """All chunks as the cluster says them, in any order."""
    ray = _ray()
    assert asked.ray is not None
    if asked.device not in ("cpu", "cuda"):
        raise ConfigError(
            "device = {device} names one of many; with --ray it is cpu or cuda", device=asked.device
        )
    with redirect_stdout(sys.stderr):  # where Ray would tell of lost workers
        _connect(ray, asked.ray)
        try:
            workers = _n_workers(ray, asked)
            yield from _said(ray, shards, asked, terms, models, workers)
        except ray.exceptions.RayError as error:
            raise ResourceError(
                "the Ray cluster gave up: {reason}; --resume goes on from what is done",
                reason=str(error).strip().splitlines()[0],
            ) from error
        finally:
            ray.shutdown()


def _ray() -> Any:
    """Ray, as silent as it can be."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise ConfigError("the option --ray needs a package: pip install 'regard[ray]'") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join a cluster that is there; one that does not answer is not waited for long."""
    no_answer = ResourceError(
        "no Ray cluster answers at {address}; start one with: ray start --head, or name another "
        "with --ray HOST:PORT",
        address=address,
    )
    if address != "auto":
        _check_port(address, no_answer)
    found: list[BaseException | None] = []

    def connect() -> None:
        try:
            ray.init(
                address=address,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
            found.append(None)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not found or (address == "auto" and isinstance(found[0], ConnectionError)):
        raise no_answer
    if found[0] is not None:
        raise ResourceError(
            "the Ray cluster at {address} does not take this process: {reason}",
            address=address,
            reason=str(found[0]).strip().splitlines()[0],
        )


def _check_port(address: str, no_answer: ResourceError) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        raise ConfigError(
            "{address} is no address of a Ray cluster; write auto, or HOST:PORT as in "
            "10.0.0.1:6379",
            address=address,
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE / 3).close()
    except OSError:
        raise no_answer from None


def _n_workers(ray: Any, asked: "Options") -> int:
    """One for each processor that is to do it, or as many as are asked for."""
    kind = "CPU" if asked.device == "cpu" else "GPU"
    there = int(ray.cluster_resources().get(kind, 0))
    wanted = asked.workers or there
    if there < 1 or wanted > there:
        raise ResourceError(
            "the Ray cluster has {there} {kind}s, and {wanted} workers need one each",
            there=there,
            kind=kind,
            wanted=max(1, wanted),
        )
    return wanted


def _said(
    ray: Any,
    shards: Sequence[Shard],
    asked: "Options",
    terms: Mapping[str, str],
    models: Sequence[Path],
    workers: int,
) -> Iterator[Chunk]:
    data = ray.data
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # every chunk by itself, so that all workers have some
    context.execution_no_progress_timeout_s = SILENCE  # a worker is started again without end
    work = Work(
        shards,
        chunk_size(asked.device),
        asked,
        terms,
        [(str(model), sha256(model / "MANIFEST.json")) for model in models],
        [ray.put(_read_files(model)) for model in models],
        language(),
        __version__,
    )
    readers = min(len(shards), 1 + workers // READERS)
    said = (
        data.from_items([{"shard": index} for index in range(len(shards))])
        .map_batches(
            _read,
            fn_args=(work,),
            batch_size=1,
            batch_format="pyarrow",
            compute=data.TaskPoolStrategy(size=readers),
            num_cpus=0,
        )
        .map_batches(
            Worker,
            fn_constructor_args=(work,),
            batch_size=None,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=AHEAD),
            num_cpus=1 if asked.device == "cpu" else 0,
            num_gpus=0 if asked.device == "cpu" else 1,
        )
    )
    for row in said.iter_rows():
        yield Chunk(**row)


# --- on the machines of the cluster


def _read(table: Any, work: Work) -> Iterator[Any]:
    """The chunks of a shard, each as a table of one row."""
    os.environ["REGARD_LANG"] = work.language
    for index in table["shard"].to_pylist():
        for chunk in chunks_of(work.shards[index], index, work.size, work.asked.on_bad):
            yield _table([chunk])


class Worker:
    """A process of the cluster that has a model, and says chunks with it."""

    def __init__(self, work: Work) -> None:
        os.environ["REGARD_LANG"] = work.language
        try:
            self.say = _ready(work)
            self.fault = ""
        except RegardError as error:  # told with the first chunk, since Ray would try for ever
            self.fault = packed(error)

    def __call__(self, table: Any) -> Any:
        """The same chunks, said."""
        chunks = [Chunk(**row) for row in table.to_pylist()]
        if self.fault:
            return _table([replace(chunk, fault=self.fault) for chunk in chunks])
        return _table([self.say(chunk) for chunk in chunks])


def _ready(work: Work) -> Any:
    from regard.decode.translator import load

    if work.version != __version__:
        raise ResourceError(
            "the cluster has regard {there} and this machine {here}; install the same",
            there=__version__,
            here=work.version,
        )
    asked = work.asked
    places = [
        _unpacked(place, digest, files)
        for (place, digest), files in zip(work.models, work.files, strict=True)
    ]
    translator = load(
        places, engine=asked.engine, device=asked.device, dtype=asked.dtype, threads=1
    )
    return saying(translator, asked, work.terms, [shard.name for shard in work.shards])


def _unpacked(place: str, digest: str, files: Any) -> Path:
    """A model directory on this machine: the very one, one kept before, or as it travelled."""
    import ray

    from regard.interchange.ctranslate2 import cache_folder

    manifest = Path(place) / "MANIFEST.json"
    if manifest.is_file() and sha256(manifest) == digest:
        return Path(place)
    folder = cache_folder() or Path(tempfile.mkdtemp(prefix="regard-"))
    own = folder / "models" / digest
    if not (own / "MANIFEST.json").is_file():
        with written_whole(own) as building:
            for name, content in ray.get(files).items():
                (building / name).parent.mkdir(parents=True, exist_ok=True)
                (building / name).write_bytes(content)
    return own


def _read_files(model: Path) -> dict[str, bytes]:
    return {
        path.relative_to(model).as_posix(): path.read_bytes()
        for path in sorted(model.rglob("*"))
        if path.is_file()
    }


def _table(chunks: Sequence[Chunk]) -> Any:
    import pyarrow

    return pyarrow.Table.from_pylist([asdict(chunk) for chunk in chunks])
