"""Seeds and small things that many tests need; all else stays in the test file."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import torch
from hypothesis import HealthCheck, settings

# Models converted by the tests are nobody's cache, and the next tests find them there.
os.environ["REGARD_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache" / "regard")

settings.register_profile(
    "regard",
    max_examples=int(os.environ.get("REGARD_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("regard")

if not torch.cuda.is_available():
    # Kernels are tested by Triton's interpreter then. It has to be asked for before Triton is
    # imported, which torch.compile does in passing.
    os.environ["TRITON_INTERPRET"] = "1"

torch.set_num_threads(1)  # two workers share two cores; here for what is made once for many tests


@pytest.fixture(autouse=True)
def _one_seed_and_one_thread():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # whatever the test before has set


class Server:
    """`regard serve` in a process of its own, on a port that was free, and how to ask it."""

    def __init__(self, folder, *arguments, before="", limits=None, lean=True, **options):
        """`before` is run first in its process; `limits` are other than the command's own."""
        arguments = ["--port", "0", *(["--lean"] if lean else []), *map(str, arguments)]
        # On one core: two threads that wait for each other at every product are slow beyond
        # measure where the other core is busy, as it is while tests run.
        code = f"""
import os
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, [cores[os.getpid() % len(cores)]])
from regard.serve.limits import Limits
Limits.__init__.__kwdefaults__.update({limits or {}})
{before}
from regard.cli.main import main
main()
"""
        self.log = folder / "serve.log"
        env = {**os.environ, "REGARD_LANG": "en", **options.pop("env", {})}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "serve", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env={name: value for name, value in env.items() if value is not None},
                text=True,
                **options,
            )
        self.said = self.process.stdout.readline()  # which it prints when it is ready
        found = re.search(r"http://\S+:(\d+)", self.said)
        assert found, f"{self.said}{self.log.read_text()}"
        self.address, self.port = found[0], int(found[1])

    def get(self, path, **options):
        return requests.get(self.address + path, timeout=60, **options)

    def post(self, path, json=None, **options):
        return requests.post(self.address + path, json=json, timeout=60, **options)

    def metric(self, name):
        """A number of /metrics."""
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics").text, re.M)[1])

    def workers(self):
        """The processes that translate, children of the one that was started."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = [int(pid) for task in tasks for pid in task.read_text().split()]
        return [p for p in children if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]

    def resident_mb(self):
        """The memory of all its processes."""
        statuses = [Path(f"/proc/{p}/status").read_text() for p in self._processes()]
        return sum(int(re.search(r"VmRSS:\s+(\d+)", one)[1]) for one in statuses) / 1024

    def handles(self):
        """How many files and how many threads all its processes have."""
        return [
            sum(len(os.listdir(f"/proc/{p}/{what}")) for p in self._processes())
            for what in ("fd", "task")
        ]

    def cpu_seconds(self):
        """What its first process has worked."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def _processes(self):
        return [self.process.pid, *self.workers()]

    def stop(self):
        """The exit code after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(30)


def _servers(tmp_path_factory):
    servers = []

    def start(*arguments, **options):
        servers.append(Server(tmp_path_factory.mktemp("serve"), *arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def serve(tmp_path_factory):
    """How to start a server, by the command's own arguments; it is stopped after the test."""
    yield from _servers(tmp_path_factory)


@pytest.fixture(scope="session")
def serve_all(tmp_path_factory):
    """The same for a server that many tests ask."""
    yield from _servers(tmp_path_factory)


def pytest_collection_modifyitems(config, items):
    checked = config.getoption("--jaxtyping-packages", default=None)
    for item in items:
        if "gpu" in item.keywords and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
        if "plain" in item.keywords and checked:
            item.add_marker(pytest.mark.skip(reason="not under the shape checker"))
