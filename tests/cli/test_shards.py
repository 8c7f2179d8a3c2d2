"""Many files, translated by this process into a folder; and what is asked of a cluster wrongly."""

import gzip
import random
import socket
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from regard.cli import bulk
from regard.cli.main import main
from regard.cli.shards import cluster
from regard.cli.shards.chunks import Chunk, chunks_of, packed, unpacked
from regard.cli.shards.job import Job, Shard, _said_name
from regard.cli.shards.output import Output
from regard.errors import DataError, ModelError, RegardError, ResourceError

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"
LINES = ["十二", "", "三分之二", "三百零五元四角二分"]


def translate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["translate", "--model", str(NUMERALS), *map(str, arguments)])
    return left.value.code or 0


def written(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """Three files in a folder, of many chunks, one, and none; and what each becomes alone."""
    monkeypatch.setattr(bulk, "CHUNK", 3)
    folder, alone = tmp_path / "in", {}
    folder.mkdir()
    content = "".join(line + "\n" for line in LINES * 4).encode()
    (folder / "a.zh.gz").write_bytes(gzip.compress(content))
    written(folder / "b.zh", LINES[:2])
    (folder / "c.zh").touch()
    for name, target in (("a.zh.gz", "a.en"), ("b.zh", "b.en"), ("c.zh", "c.en")):
        place = tmp_path / f"alone.{target}"
        assert translate("-i", folder / name, "-o", place, "--from", "zh", "--to", "en") == 0
        alone[target] = place.read_bytes()
    return folder, alone


def said_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}


WAY = ("--from", "zh", "--to", "en")


def test_a_pattern_becomes_a_folder_with_what_each_file_becomes_alone(shards, tmp_path, capsys):
    folder, alone = shards
    assert translate("-i", f"{folder}/*.zh*", "-o", tmp_path / "out", *WAY) == 0
    assert said_in(tmp_path / "out") == alone
    assert capsys.readouterr().out == ""
    assert translate("-i", f"{folder}/*.zh*", "-o", tmp_path / "out", *WAY, "--resume") == 0


def test_what_fsspec_opens_is_read_and_written(shards, tmp_path):
    folder, alone = shards
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    source, target = f"zip://*.zh*::file://{tmp_path}/in.zip", "memory://test-shards/out/"
    assert translate("-i", source, "-o", target, *WAY) == 0
    memory = fsspec.filesystem("memory")
    names = sorted(path.rsplit("/", 1)[-1] for path in memory.ls("/test-shards/out", detail=False))
    assert names == ["a.en", "b.en", "c.en", "translation.json"]
    assert {name: memory.cat(f"/test-shards/out/{name}") for name in alone} == alone
    one = f"file://{folder}/b.zh"
    assert translate("-i", one, "-o", f"file://{tmp_path}/named.en", *WAY) == 0
    assert (tmp_path / "named.en").read_bytes() == alone["b.en"]
    memory.rm("/test-shards", recursive=True)


def test_what_was_stopped_goes_on_to_the_same_output(shards, tmp_path, monkeypatch, capsys):
    folder, alone = shards
    source, out = f"{folder}/*.zh*", tmp_path / "out"
    real, taken = Output.take, []

    def take_thrice(self, chunk):
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(chunk)
        return real(self, chunk)

    monkeypatch.setattr(Output, "take", take_thrice)
    assert translate("-i", source, "-o", out, *WAY) == 130
    monkeypatch.setattr(Output, "take", real)
    assert sorted(path.name for path in out.iterdir()) == [
        "a.en.part", "a.en.part.json", "translation.json",
    ]  # fmt: skip
    with (out / "a.en.part").open("ab") as part:
        part.write(b"half a chu")
    capsys.readouterr()
    assert translate("-i", source, "-o", out, *WAY) == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds a translation; go on with --resume, or name another place with -o\n"
    )
    assert translate("-i", source, "-o", out, *WAY, "--resume", "--beam", 2) == 2
    assert capsys.readouterr().err == (
        f"error: {out} was begun with another beam; ask for the same again, or remove it\n"
    )
    read = []
    monkeypatch.setattr(Output, "take", lambda self, chunk: read.append(chunk) or real(self, chunk))
    assert translate("-i", source, "-o", out, *WAY, "--resume") == 0
    assert said_in(out) == alone
    assert min(chunk.number for chunk in read if chunk.shard == 0) == 3  # what was done is not


def test_chunks_in_any_order_and_twice_are_written_once_in_theirs(tmp_path):
    chance = random.Random(5)
    for round_ in range(30):
        n = chance.randrange(0, 12)
        chunks = [Chunk(0, i, i, 1, f"line {i}\n") for i in range(n)] + [Chunk(0, n, n)]
        order = chunks + chance.choices(chunks, k=3)
        chance.shuffle(order)
        out = tmp_path / str(round_)
        out.mkdir()
        shard = Shard(None, "a", "a.en", 0)
        job = Job([shard], fsspec.filesystem("file"), str(out), False)
        output = Output(job, shard, out / "a.en.part", {}, resume=True)
        finished = [output.take(chunk) for chunk in order]
        assert sum(finished) == 1
        assert (out / "a.en").read_text() == "".join(f"line {i}\n" for i in range(n))
        assert [path.name for path in out.iterdir()] == ["a.en"]


def test_a_shard_is_cut_at_the_same_lines_wherever_it_is_gone_on_with(tmp_path):
    source = written(tmp_path / "a.zh", [f"{n}" for n in range(10)])
    file = fsspec.open(str(source), "rb")
    whole = list(chunks_of(Shard(file, "a", "b", None), 0, 4, "replace"))
    assert [(c.number, c.first, c.lines) for c in whole] == [
        (0, 0, ["0", "1", "2", "3"]), (1, 4, ["4", "5", "6", "7"]), (2, 8, ["8", "9"]), (3, 10, []),
    ]  # fmt: skip
    for done in range(4):
        assert list(chunks_of(Shard(file, "a", "b", None, done), 0, 4, "replace")) == whole[done:]


@pytest.mark.parametrize(
    ("path", "directions", "asked", "expected"),
    [
        ("in/a.zh.gz", [("zh", "en")], {}, "a.en"),
        ("a.zh", [("zh", "en"), ("en", "zh")], {}, "a.en"),
        ("a.en", [("zh", "en"), ("en", "zh")], {}, "a.zh"),
        ("a.zh", [("zh", "en"), ("zh", "de")], {}, "a.zh"),  # who knows
        ("a.zh", [("zh", "en"), ("zh", "de")], {"tgt_lang": "de"}, "a.de"),
        ("a.txt.xz", [("zh", "en")], {}, "a.txt"),
        ("news.zh.tsv", [("zh", "en")], {}, "news.zh.tsv"),
        ("zh", [("zh", "en")], {}, "zh"),
        ("a.zh", [("", "")], {}, "a.zh"),
        ("a.zh", [("", "")], {"src_lang": "zh", "tgt_lang": "en"}, "a.en"),
    ],
)
def test_a_file_is_called_by_the_language_it_is_in_now(path, directions, asked, expected):
    asked = SimpleNamespace(**{"src_lang": "", "tgt_lang": "", **asked})
    assert _said_name(path, asked, SimpleNamespace(directions=directions)) == expected


@pytest.mark.parametrize(
    "error",
    [
        DataError("line {line} is no text: {detail}; correct it, or choose --on-bad",
                  line=3, detail="nul, character 1"),
        ModelError("there is no model directory {path}", path="x"),
    ],
)  # fmt: skip
def test_an_error_travels_as_text(error):
    found = unpacked(packed(error))
    assert type(found) is type(error)
    assert [found.in_language(one) for one in ("en", "zh")] == [
        error.in_language(one) for one in ("en", "zh")
    ]


def test_faults_and_warnings_name_file_and_line(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes("十二\n".encode() + b"\xff\n")
    source = f"{tmp_path}/*.txt"
    assert translate("-i", source, "-o", tmp_path / "one", "--on-bad", "stop") == 3
    assert capsys.readouterr().err.startswith("error: line 2 is no text: ")
    assert translate("-i", source, "-o", tmp_path / "two", "--on-bad", "empty") == 0
    assert capsys.readouterr().err.startswith(f"{tmp_path}/a.txt: warning: line 2 is no text (")
    assert (tmp_path / "two" / "a.txt").read_text().split("\n")[1:] == ["", ""]


def test_what_cannot_be_is_refused_before_the_work(tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder / "a.txt", LINES)
    with gzip.open(folder / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write("十二\n")
    written(folder / "b.html", ["<p>"])
    written(folder / "c.docx", ["x"])
    out, same = tmp_path / "out", tmp_path / "same"
    same.symlink_to(folder)
    for arguments, message in {
        ("-i", f"{folder}/x*", "-o", out): f"there is no file {folder}/x*",
        ("-i", f"{folder}/a*", "-o", out): (
            f"2 of the files would be written to {out}/a.txt; translate them into different folders"
        ),
        ("-i", f"{folder}/*.txt", "-o", folder): (
            f"{folder}/a.txt would be written over itself; name another place with -o"
        ),
        ("-i", f"{folder}/*.txt", "-o", same): (
            f"{folder}/a.txt would be written over itself; name another place with -o"
        ),
        ("-i", f"{folder}/*.html", "-o", out): (
            f"{folder}/b.html is a document; translate documents one by one"
        ),
        ("-i", f"{folder}/*.docx", "-o", out): (
            f"{folder}/c.docx is no text that can be translated: plain text, TSV, TMX, XLIFF, PO, "
            "SRT, VTT and HTML can, .docx cannot; --format says what a file is"
        ),
        ("-i", "nowhere://a/*.zh", "-o", out): (
            "nowhere://a/*.zh cannot be opened: Protocol not known: nowhere"
        ),
        ("-i", f"{folder}/a.txt", "-o", out, "--workers", 2): "the option --workers needs --ray",
        ("--ray", "auto", "十二"): "the option --ray needs -i FILES and -o FOLDER",
        ("-i", f"{folder}/*.txt", "-o", out, "十二"): "give a text or -i FILE, not both",
    }.items():
        assert translate(*arguments) in (2, 3)
        assert capsys.readouterr().err == f"error: {message}\n"
        assert not out.exists()
    out.mkdir()
    written(out / "a.txt", ["before"])
    assert translate("-i", f"{folder}/*.txt", "-o", out) == 2
    assert capsys.readouterr().err == (
        f"error: {out}/a.txt is there already; name another folder with -o, or remove it\n"
    )


def test_a_cluster_that_is_not_there_is_not_waited_for(tmp_path, monkeypatch, capsys):
    source = written(tmp_path / "a.zh", LINES)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    asked = ("-i", source, "-o", tmp_path / "a.en")
    for ray, code, message in (
        (nobody, 5, f"no Ray cluster answers at {nobody}; start one with: ray start --head, or "
         "name another with --ray HOST:PORT"),
        ("ray://here:10001", 2, "ray://here:10001 is no address of a Ray cluster; write auto, or "
         "HOST:PORT as in 10.0.0.1:6379"),
    ):  # fmt: skip
        assert translate(*asked, "--ray", ray) == code
        assert capsys.readouterr().err == f"error: {message}\n"
    assert translate(*asked, "--ray", nobody, "--device", "cuda:1") == 2
    assert capsys.readouterr().err == (
        "error: device = cuda:1 names one of many; with --ray it is cpu or cuda\n"
    )
    monkeypatch.setitem(sys.modules, "ray", None)
    assert translate(*asked, "--ray", "auto") == 2
    assert capsys.readouterr().err == (
        "error: the option --ray needs a package: pip install 'regard[ray]'\n"
    )


class FakeRay:
    """As much of Ray as is asked before a job begins."""

    def __init__(self, error=None, **there):
        self.error, self.there = error, there

    def init(self, **_):
        if self.error:
            raise self.error

    def cluster_resources(self):
        return self.there


def asking(device, workers=None):
    return SimpleNamespace(device=device, workers=workers)


def test_there_is_a_worker_for_each_processor_and_no_more():
    ray = FakeRay(CPU=4.0)
    assert cluster._n_workers(ray, asking("cpu")) == 4
    assert cluster._n_workers(ray, asking("cpu", 3)) == 3
    for asked, message in (
        (asking("cpu", 5), "the Ray cluster has 4 CPUs, and 5 workers need one each"),
        (asking("cuda"), "the Ray cluster has 0 GPUs, and 1 workers need one each"),
    ):
        with pytest.raises(ResourceError) as refused:
            cluster._n_workers(ray, asked)
        assert str(refused.value) == message


def test_a_cluster_that_refuses_or_says_nothing_is_told_of(monkeypatch):
    with pytest.raises(ResourceError) as refused:
        cluster._connect(FakeRay(ConnectionError("none")), "auto")
    assert str(refused.value).startswith("no Ray cluster answers at auto; start one with: ")
    with pytest.raises(ResourceError) as refused:
        cluster._connect(FakeRay(RuntimeError("Version mismatch: 1 and 2\nmore")), "auto")
    assert str(refused.value) == (
        "the Ray cluster at auto does not take this process: Version mismatch: 1 and 2"
    )


def test_a_cluster_that_gives_up_is_left_with_its_reason(monkeypatch):
    class RayError(Exception):
        pass

    left = []
    ray = SimpleNamespace(
        exceptions=SimpleNamespace(RayError=RayError), shutdown=lambda: left.append(True)
    )

    def said(*_):
        yield Chunk(0, 0)
        raise RayError("no progress for 1800 s\nand more")

    monkeypatch.setattr(cluster, "_ray", lambda: ray)
    monkeypatch.setattr(cluster, "_connect", lambda ray, address: None)
    monkeypatch.setattr(cluster, "_n_workers", lambda ray, asked: 1)
    monkeypatch.setattr(cluster, "_said", said)
    chunks = cluster.said_on_cluster([], SimpleNamespace(ray="auto", device="cpu"), {}, [])
    assert next(chunks) == Chunk(0, 0)
    assert not left
    with pytest.raises(ResourceError) as told:
        next(chunks)
    assert str(told.value) == (
        "the Ray cluster gave up: no progress for 1800 s; --resume goes on from what is done"
    )
    assert left


def test_another_version_on_the_cluster_is_told_with_the_first_chunk(monkeypatch):
    work = cluster.Work([], 3, asking("cpu"), {}, [], [], "en", "0.0.1")
    monkeypatch.setattr(cluster, "_table", lambda chunks: chunks)
    worker = cluster.Worker(work)

    class Rows:
        def to_pylist(self):
            return [{"shard": 0, "number": 0, "n_lines": 1, "text": "x"}]

    (chunk,) = worker(Rows())
    with pytest.raises(RegardError) as told:
        raise unpacked(chunk.fault)
    assert str(told.value) == (
        f"the cluster has regard {cluster.__version__} and this machine 0.0.1; install the same"
    )


def test_a_model_that_has_travelled_is_the_same_model(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    from regard.bundle import open_bundle
    from regard.decode.translator import BUNDLED
    from regard.storage import sha256

    files = cluster._read_files(BUNDLED)
    monkeypatch.setattr("ray.get", lambda ref: ref)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    digest = sha256(BUNDLED / "MANIFEST.json")
    assert cluster._unpacked(str(BUNDLED), digest, files) == BUNDLED  # it is here already
    there = cluster._unpacked("/nowhere", digest, files)
    assert there == tmp_path / "models" / digest
    assert open_bundle(there).model == open_bundle(BUNDLED).model
    assert cluster._unpacked("/nowhere", digest, None) == there  # and is kept
