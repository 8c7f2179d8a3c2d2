"""Files translated by workers of a Ray cluster, of which some are killed.

The cluster is one of its own on this machine, with two CPUs, a secret of its own, and no more life
than the test.
"""

import contextlib
import gzip
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
WORDS = ["喜欢", "今天", "苹果", "学校", "朋友", *"我你他去吃看书的了吗很不在"]
STORE = 100 << 20  # bytes of memory for what is on its way


class Cluster:
    """Ray on this machine: started by hand, and ended with all that it has started."""

    def __init__(self, place, cpus):
        self.log = place / "ray.log"
        self.place = Path(tempfile.mkdtemp(prefix="ray-"))  # its sockets need a short name
        self.env = {
            **os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0", "REGARD_LANG": "en",
        }  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self.process = self._started(
            self.log, "127.0.0.1", "--head", f"--port={port}", f"--num-cpus={cpus}",
            "--include-dashboard=false", f"--temp-dir={self.place}",
        )  # fmt: skip

    def join(self):
        """Another machine of one CPU, as far as Ray can tell; what ends it."""
        log = self.log.with_name("joined.log")
        node = self._started(log, "127.0.0.2", f"--address={self.address}", "--num-cpus=1")

        def lose():
            node.kill()
            node.wait()
            while pids := [pid for pid, _ in self._processes(b"127.0.0.2")]:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        return lose

    def _started(self, log, address, *arguments):
        """A node of the cluster that is ready for work."""
        with log.open("wb") as file:
            process = subprocess.Popen(
                [
                    sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *arguments,
                    f"--node-ip-address={address}", f"--object-store-memory={STORE}",
                    "--disable-usage-stats",
                ],
                env={**self.env, "NODE": address},
                stdout=file,
                stderr=file,
            )  # fmt: skip
        until = time.monotonic() + 90
        while b"Ray runtime started" not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        return process

    def workers(self):
        """The processes of this cluster that hold a model."""
        return [
            pid
            for pid, name in self._processes()
            if name.startswith(b"ray::MapWorker(MapBatches(Worker))")
        ]

    def _processes(self, node=b""):
        mine = f"RAY_AUTH_TOKEN={self.env['RAY_AUTH_TOKEN']}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environ = (place / "environ").read_bytes().split(b"\0")
                if mine in environ and (not node or b"NODE=" + node in environ):
                    yield int(place.name), (place / "cmdline").read_bytes()

    def start(self, *arguments):
        """A translation that goes on by itself."""
        command = [sys.executable, "-m", "regard", "translate", "--model", str(TATOEBA)]
        return subprocess.Popen(
            [*command, "--beam", "1", "--ray", self.address, *map(str, arguments)],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def translate(self, *arguments):
        """A translation, and what came of it."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    def end(self):
        self.process.kill()
        self.process.wait()
        while pids := [pid for pid, _ in self._processes()]:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"), cpus=2)
    yield made
    made.end()


def shards(folder, n_lines):
    """Short sentences in three files, one of them an archive and one empty."""
    chance = random.Random(n_lines)
    folder.mkdir()
    lines = ["".join(chance.choices(WORDS, k=chance.randint(1, 3))) + "。" for _ in range(n_lines)]
    cut = n_lines // 3
    with gzip.open(folder / "a.zh.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines[:cut])
    (folder / "b.zh").write_text("".join(f"{line}\n" for line in lines[cut:]), encoding="utf-8")
    (folder / "c.zh").touch()
    return f"{folder}/*.zh*", {"a.en": cut, "b.en": n_lines - cut, "c.en": 0}


def here(source, target):
    """The same translation by this machine alone."""
    subprocess.run(
        [sys.executable, "-m", "regard", "translate", "--model", str(TATOEBA), "--beam", "1",
         "-i", source, "-o", str(target)],
        check=True, capture_output=True, timeout=1500,
    )  # fmt: skip


def n_done(folder):
    """Lines that are written, in files that are finished or not."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.en*")
               if path.suffix != ".json")  # fmt: skip


@pytest.mark.timeout(3000)
def test_a_worker_that_is_killed_costs_no_line(cluster, dice, often, tmp_path, record_property):
    n_lines = often(4000, 200_000)
    source, expected = shards(tmp_path / "in", n_lines)
    here(source, tmp_path / "here")
    out = tmp_path / "there"
    process = cluster.start("-i", source, "-o", out)
    deadline = time.monotonic() + 120
    while n_done(out) < n_lines // 10 and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    before = cluster.workers()
    assert len(before) == 2
    os.kill(dice.choice(before), signal.SIGKILL)
    said, err = process.communicate(timeout=2400)
    assert process.returncode == 0, err
    assert said == ""
    for name, lines in expected.items():
        there = (out / name).read_bytes()
        assert there == (tmp_path / "here" / name).read_bytes()
        assert there.count(b"\n") == lines
    assert sorted(path.name for path in out.iterdir()) == [*expected, "translation.json"]
    record_property("counted", f"{n_lines} lines, one of two workers killed: the same output")


@pytest.mark.timeout(600)
def test_a_job_that_is_killed_goes_on_to_the_same_output(cluster, often, tmp_path):
    if not often(False, True):
        pytest.skip("in the long form: REGARD_FAULTS=long")
    n_lines = 30_000
    source, expected = shards(tmp_path / "in", n_lines)
    here(source, tmp_path / "here")
    out = tmp_path / "there"
    process = cluster.start("-i", source, "-o", out)
    deadline = time.monotonic() + 120
    while n_done(out) < n_lines // 4 and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert any(not (out / name).exists() for name in expected)
    code, _, err = cluster.translate("-i", source, "-o", out, "--resume")
    assert code == 0, err
    for name in expected:
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.timeout(900)
def test_a_machine_that_is_lost_costs_no_line(often, tmp_path):
    """Two nodes of one CPU each; what the second had at hand is said by the first."""
    if not often(False, True):
        pytest.skip("in the long form: REGARD_FAULTS=long")
    source, expected = shards(tmp_path / "in", 8000)
    here(source, tmp_path / "here")
    cluster, out = Cluster(tmp_path, cpus=1), tmp_path / "there"
    try:
        lose = cluster.join()
        process = cluster.start("-i", source, "-o", out, "--workers", 2)
        deadline = time.monotonic() + 120
        while n_done(out) < 2000 and time.monotonic() < deadline:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        lose()
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    finally:
        cluster.end()
    for name in expected:
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.timeout(600)
def test_what_a_cluster_cannot_do_is_refused_and_a_bad_line_is_named(cluster, tmp_path):
    (tmp_path / "a.zh").write_bytes("我\n".encode() + b"\xff\n")
    asked = ("-i", tmp_path / "a.zh", "-o", tmp_path / "a.en")
    code, _, err = cluster.translate(*asked, "--workers", 3)
    assert code == 5
    assert "error: the Ray cluster has 2 CPUs, and 3 workers need one each\n" in err
    code, _, err = cluster.translate(*asked, "--workers", 1, "--on-bad", "stop")
    assert code == 3
    assert "error: line 2 is no text: " in err
    assert not (tmp_path / "a.en").exists()
