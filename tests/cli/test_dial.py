import pytest
import torch

from regard.cli.dial import SIZES, derived, fitting_size, tuned
from regard.model import build_model
from regard.recipe import config_from_table

COUNTS = (100, 4_999, 5_000, 30_000, 200_000, 3_000_000, 50_000_000)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("n_pairs", COUNTS)
def test_what_follows_from_the_text_are_settings_that_can_be(n_pairs, on_gpu):
    for table in (derived(n_pairs, 80, on_gpu=on_gpu), tuned(n_pairs, on_gpu=on_gpu)):
        train = config_from_table(table).train
        assert train.warmup < train.steps
        assert train.steps % train.validate_every == 0  # so that the last one is no extra
        assert train.batching == ("packed" if on_gpu else "padded")
        assert train.patience


@pytest.mark.parametrize("on_gpu", [False, True])
def test_more_text_gives_no_smaller_network_and_no_less_work(on_gpu):
    tables = [derived(n_pairs, 80, on_gpu=on_gpu) for n_pairs in COUNTS]
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
    table = derived(100, 80, size, on_gpu=False)
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
        from_nothing = derived(n_pairs, 80, on_gpu=True)["train"]
        more = tuned(n_pairs, on_gpu=True)["train"]
        assert more["lr"] < from_nothing["lr"]
        assert "model" not in tuned(n_pairs, on_gpu=True)


@pytest.mark.parametrize("steps", [1, 3, 200, 1_000_000])
def test_a_number_of_updates_that_is_asked_for_brings_a_schedule_that_fits_it(steps):
    for table in (
        derived(3_000, 80, on_gpu=False, steps=steps),
        tuned(3_000, on_gpu=False, steps=steps),
    ):
        train = config_from_table(table).train
        assert train.steps == steps
        assert train.warmup < train.steps
        assert train.validate_every == train.save_every <= train.steps
        assert train.steps // train.validate_every >= min(steps, 10)


@pytest.mark.parametrize(("n_characters", "size"), [(80, 1000), (1832, 4000), (3000, 7000)])
def test_the_vocabulary_has_room_for_words_beside_the_characters(n_characters, size):
    assert derived(2_000, n_characters, on_gpu=False)["data"]["vocab_size"] == size
