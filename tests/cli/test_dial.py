import pytest
import torch

from regard.cli.dial import SIZES, derived, fitting_size, tuned
from regard.model import build_model
from regard.recipe import config_from_table

COUNTS = (100, 4_999, 5_000, 30_000, 200_000, 3_000_000, 50_000_000)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("n_pairs", COUNTS)
def test_what_follows_from_the_text_are_settings_that_can_be(n_pairs, on_gpu):
    for table in (derived(n_pairs, None, on_gpu=on_gpu), tuned(n_pairs, on_gpu=on_gpu)):
        train = config_from_table(table).train
        assert train.warmup < train.steps
        assert train.steps % train.validate_every == 0  # so that the last one is no extra
        assert train.batching == ("packed" if on_gpu else "padded")
        assert train.patience


@pytest.mark.parametrize("on_gpu", [False, True])
def test_more_text_gives_no_smaller_network_and_no_less_work(on_gpu):
    tables = [derived(n_pairs, None, on_gpu=on_gpu) for n_pairs in COUNTS]
    for names in (("model", "d_model"), ("data", "vocab_size")):
        values = [table[names[0]][names[1]] for table in tables]
        assert values == sorted(values)
    dropouts = [table["model"]["dropout"] for table in tables]
    assert dropouts == sorted(dropouts, reverse=True)
    work = [table["train"]["steps"] * table["train"]["tokens"] for table in tables]
    assert work[0] == min(work)
    assert work[-1] == max(work)


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_is_asked_for_is_taken(size):
    table = derived(100, size, on_gpu=False)
    assert {name: table["model"][name] for name in SIZES[size]} == SIZES[size]


def test_the_base_size_is_the_papers():
    defaults = config_from_table({}).model
    assert {name: getattr(defaults, name) for name in SIZES["base"]} == SIZES["base"]


def test_sizes_grow():
    with torch.device("meta"):  # shapes alone
        networks = [
            build_model(config_from_table({"model": size}).model, 9, 9) for size in SIZES.values()
        ]
    counts = [sum(p.numel() for p in network.parameters()) for network in networks]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(SIZES)


def test_a_cpu_is_spared_the_large_ones():
    assert {fitting_size(n, on_gpu=False) for n in COUNTS} == {"tiny", "small"}
    assert {fitting_size(n, on_gpu=True) for n in COUNTS} == set(SIZES)


def test_fine_tuning_goes_gently():
    for n_pairs in COUNTS:
        from_nothing = derived(n_pairs, None, on_gpu=True)["train"]
        more = tuned(n_pairs, on_gpu=True)["train"]
        assert more["lr"] < from_nothing["lr"]
        assert "model" not in tuned(n_pairs, on_gpu=True)
