import pytest

from regard.errors import ModelError
from regard.study.claim import CHINESE, Claim, Limit, at_least, at_most, shown
from regard.view.panels import Words

WORDS = Words("what is measured", "所测的量")
CLAIM = Claim(note="002", words=WORDS, measured=WORDS, bound=at_most(0.5), control=WORDS)


def limited(bound):
    return Claim(
        note="002",
        words=WORDS,
        measured=WORDS,
        bound=at_least(1.0),
        control=WORDS,
        limit=Limit(WORDS, bound),
    )


@pytest.mark.parametrize(("number", "is_within"), [(0.4, True), (0.5, True), (0.6, False)])
def test_a_bound_admits_numbers_on_its_side_and_itself(number, is_within):
    assert at_most(0.5).admits(number) == is_within
    assert at_least(0.5).admits(-number + 1.0) == is_within


@pytest.mark.parametrize(("number", "verdict"), [(0.1, "holds"), (0.9, "does not hold")])
def test_the_verdict_comes_from_the_number(number, verdict):
    assert CLAIM.found(number, 1.0 - number).verdict == verdict


@pytest.mark.parametrize(
    ("number", "limit", "verdict"),
    [
        (2.0, 0.0, "holds with a limit"),
        (2.0, 5.0, "holds"),
        (0.0, 0.0, "does not hold"),
    ],
)
def test_a_limit_counts_only_where_the_claim_holds_and_the_limit_is_met(number, limit, verdict):
    assert limited(at_most(1.0)).found(number, 0.5, limit).verdict == verdict


@pytest.mark.parametrize("verdict", ["holds", "holds with a limit", "does not hold"])
def test_every_verdict_has_its_chinese(verdict):
    assert CHINESE[verdict].endswith("成立")


@pytest.mark.parametrize(
    ("number", "control", "verdict"), [(0.1, 0.9, "holds"), (0.9, 0.1, "does not hold")]
)
def test_a_control_that_comes_out_the_other_way_is_accepted(number, control, verdict):
    found = CLAIM.found(number, control)
    found.check("e00")  # raises nothing
    assert found.verdict == verdict


@pytest.mark.parametrize("control", [0.2, float("nan"), float("-inf")])
def test_a_control_that_comes_out_the_same_way_or_is_no_number_fails_the_run(control):
    with pytest.raises(ModelError) as failure:
        CLAIM.found(0.1, control).check("e00")
    assert str(failure.value) == (
        "e00 shows nothing, for its control came out as its number did: 0.1 and "
        f"{shown(control)}, where at most 0.5 was asked of: what is measured"
    )


def test_a_failed_control_is_told_in_chinese():
    with pytest.raises(ModelError) as failure:
        CLAIM.found(0.1, 0.2).check("e00")
    assert failure.value.in_language("zh") == (
        "e00说明不了什么，因为对照与测量结果相同：分别是0.1和0.2，要求至多0.5（what is measured）"
    )


def test_an_open_question_is_held_against_nothing_if_found_and_else_against_something():
    nothing, something = Words("nothing", "无"), Words("something", "有")
    question = Claim(
        note="003",
        words=WORDS,
        measured=WORDS,
        bound=at_least(1.5),
        control=nothing,
        otherwise=something,
    )
    yes, no = (question.found(number, 1.0, otherwise=3.0) for number in (2.0, 1.2))
    assert (yes.verdict, yes.control, yes.claim.control) == ("holds", 1.0, nothing)
    assert (no.verdict, no.control, no.claim.control) == ("does not hold", 3.0, something)
    yes.check("e00")
    no.check("e00")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.034112, "0.0341"),
        (4254.3, "4,254"),
        (123456.0, "123,456"),
        (5.7e-8, "5.7e-08"),
        (1e-5, "1e-05"),
        (-0.9921, "-0.992"),
        (2.5e7, "2.5e+07"),
    ],
)
def test_numbers_are_written_with_the_digits_that_count(number, text):
    assert shown(number) == text
