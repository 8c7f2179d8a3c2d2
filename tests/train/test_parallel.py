import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from regard.errors import ResourceError
from regard.train.parallel import Parallel, others_told

SCRIPT = Path(__file__).with_name("ranks.py")
pytestmark = [pytest.mark.dist, pytest.mark.slow]


def run(out, kind, *, ranks, stop_at=50):
    """Updates up to `stop_at` by so many processes, from the newest checkpoint in `out`."""
    out.mkdir(exist_ok=True)
    start = [sys.executable]
    if ranks > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [*start, str(SCRIPT), str(out), kind, str(stop_at)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return load_file(out / "weights.safetensors")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run(tmp_path_factory.mktemp("alone"), "ddp", ranks=1)


def furthest(weights, others):
    assert weights.keys() == others.keys()
    return max(float((weights[name] - others[name]).abs().max()) for name in weights)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_ranks_with_uneven_batches_equal_one(tmp_path, alone, kind):
    """Float64, 50 updates: weights and running averages."""
    assert furthest(run(tmp_path / "two", kind, ranks=2), alone) < 1e-9


@pytest.mark.skipif(
    os.environ.get("REGARD_FAULTS") != "long", reason="in the long form: REGARD_FAULTS=long"
)
@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3)])
def test_a_checkpoint_of_so_many_ranks_goes_on_with_another_number(tmp_path, alone, before, after):
    run(tmp_path / "run", "fsdp", ranks=before, stop_at=25)
    # A third is no binary fraction, and Adam divides the smallest gradients by their own size.
    near = 1e-6 if after == 3 else 1e-9
    assert furthest(run(tmp_path / "run", "fsdp", ranks=after), alone) < near


def test_the_death_of_another_rank_is_a_sentence_and_other_errors_are_themselves():
    with (
        pytest.raises(
            ResourceError,
            match=r"^another process of this run has died; its own words say why, and --resume "
            r"goes on from the last checkpoint$",
        ),
        others_told(),
    ):
        raise RuntimeError("[.../gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    with pytest.raises(RuntimeError, match=r"^a fault of ours$"), others_told():
        raise RuntimeError("a fault of ours")


def test_alone_nothing_is_wrapped_or_waited_for():
    parallel = Parallel(device="cpu")
    objective = object()
    assert parallel.wrap(objective) is objective
    assert (parallel.rank, parallel.ranks, parallel.is_first) == (0, 1, True)
    parallel.wait()
    parallel.leave()
