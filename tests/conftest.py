"""Seeds and small things that many tests need; all else stays in the test file."""

import os
from pathlib import Path

import pytest
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


@pytest.fixture(autouse=True)
def _one_seed_and_one_thread():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # two workers share two cores


def pytest_collection_modifyitems(config, items):
    checked = config.getoption("--jaxtyping-packages", default=None)
    for item in items:
        if "gpu" in item.keywords and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
        if "plain" in item.keywords and checked:
            item.add_marker(pytest.mark.skip(reason="not under the shape checker"))
