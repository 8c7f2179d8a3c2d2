import pytest

from regard.errors import ConfigError
from regard.study.conduct import experiments
from regard.study.contents import CONTENTS, chosen


def test_every_experiment_of_the_table_can_be_run_and_no_other():
    assert list(experiments()) == list(CONTENTS)


def test_names_count_up_and_have_a_title_in_both_languages():
    assert [name[:4] for name in CONTENTS] == [f"e{n:02d}_" for n in range(1, len(CONTENTS) + 1)]
    for title in CONTENTS.values():
        assert any("\u4e00" <= character <= "\u9fff" for character in title.chinese)


@pytest.mark.parametrize("asked", ["e04", "e04_root_d", "root_d", " E04 "])
def test_an_experiment_is_found_by_number_by_name_or_by_both(asked):
    assert chosen([asked]) == ["e04_root_d"]


def test_several_come_in_the_order_of_the_table_and_once():
    assert chosen(["e05", "e01", "masks"]) == ["e01_kernel_regression", "e05_masks"]


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError) as failure:
        chosen(["e04_rot_d"])
    assert str(failure.value) == (
        "there is no experiment e04_rot_d; did you mean e04_root_d? regard study lists all"
    )
