"""The arithmetic of a plan, against what was measured, counted and simulated."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from regard.config import ModelConfig
from regard.model import build_model

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"^```sh\npython tools/plan\.py (.*?)\n```\n\n```text\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def plan(monkeypatch):
    spec = importlib.util.spec_from_file_location("plan", ROOT / "tools" / "plan.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "plan", module)
    spec.loader.exec_module(module)
    return module


def test_sizes_that_had_no_part_in_the_fit_are_predicted_within_a_fifth(plan):
    speed, known, measured = plan.fitted_speed(), plan.sizes(), plan.measured_speeds()
    assert set(plan.HELD_OUT).isdisjoint(plan.FITTED)
    assert len(plan.HELD_OUT) == 2
    for name in plan.HELD_OUT:
        assert speed.tokens_per_s(known[name]) == pytest.approx(measured[name], rel=0.2), name


def test_memory_of_sizes_that_had_no_part_in_the_fit_is_predicted_within_a_fifth(plan):
    peaks = plan.measured_peaks()
    for name in ("medium", "base", "wide"):
        one = plan.update_on(plan.sizes()[name], plan.MEASURED_TOKENS, 1, link=50, memory=139)
        assert one.gib == pytest.approx(peaks[name], rel=0.2), name


@pytest.mark.parametrize(("d", "n", "ff"), [(32, 2, 64), (48, 3, 192)])
def test_weights_are_counted_as_a_network_has_them(plan, monkeypatch, d, n, ff):
    monkeypatch.setattr(plan, "WORDS", 100)
    network = build_model(ModelConfig(d_model=d, n_layers=n, n_heads=4, d_ff=ff), 100, 100)
    matrices = sum(weight.numel() for weight in network.parameters() if weight.ndim == 2)
    assert plan.Size(d, n, ff).n_weights == matrices


@pytest.mark.parametrize("gpus", [1, 2, 3, 8])
def test_what_travels_is_what_a_ring_sends(plan, gpus):
    """Every rank passes a share on to the next: n-1 times to add up, n-1 times to tell."""
    size = plan.sizes()["base"]
    share = 4 * size.n_weights / gpus
    sent = sum(share for _ in ("add", "tell") for _ in range(gpus - 1))
    ddp = plan.update_on(size, 1e6, gpus, link=50, memory=139, kind="ddp")
    fsdp = plan.update_on(size, 1e6, gpus, link=50, memory=139, kind="fsdp")
    assert ddp.travels == pytest.approx(sent)
    assert fsdp.travels == pytest.approx(1.5 * sent)
    assert fsdp.gib <= ddp.gib


def test_a_slow_link_is_waited_for_and_a_quick_one_is_not(plan):
    size, tokens = plan.sizes()["big"], 8 * plan.MEASURED_TOKENS
    alone = plan.update_on(size, plan.MEASURED_TOKENS, 1, link=1, memory=139)
    quick = plan.update_on(size, tokens, 8, link=400, memory=139)
    slow = plan.update_on(size, tokens, 8, link=1, memory=139)
    assert quick.waits == 0
    assert quick.seconds == pytest.approx(alone.seconds)  # eight times as many tokens
    travelling = slow.travels / 1e9
    assert slow.seconds == pytest.approx(alone.seconds / 3 + travelling)


def test_fsdp_begins_where_ddp_no_longer_fits(plan):
    size, tokens = plan.sizes()["big"], plan.MEASURED_TOKENS
    most = plan.ddp_ends(size, tokens, memory=40)
    scale = (most / size.n_weights) ** 0.5
    for factor, kind in ((0.8, "ddp"), (1.25, "fsdp")):
        width = int(size.d_model * scale * factor)
        wider = plan.Size(width, size.n_layers, 4 * width)
        assert plan.update_on(wider, 2 * tokens, 2, link=50, memory=40).kind == kind


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_shows_what_the_script_says(plan, language, capsys):
    page = (ROOT / "docs" / language / "machines.md").read_text(encoding="utf-8")
    found = SHOWN.findall(page)
    assert len(found) == 4
    for arguments, shown in found:
        plan.main(shlex.split(arguments))
        assert capsys.readouterr().out == shown


def test_so_small_an_update_that_nobody_measured_it_is_told(plan, capsys):
    plan.main(["train", "--tokens", "512"])
    assert capsys.readouterr().out.endswith(
        "so small an update was not measured: it will take longer than is said here\n"
    )


def test_pages_are_written_as_they_are_shown(plan, tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "en" / "machines.md").read_text(encoding="utf-8")
    copy = tmp_path / "docs" / "en" / "machines.md"
    copy.parent.mkdir(parents=True)
    copy.write_text(page.replace("| wide | ", "| wide | 1"), encoding="utf-8")
    monkeypatch.setattr(plan, "ROOT", tmp_path)
    plan.main(["pages"])
    assert copy.read_text(encoding="utf-8") == page
