"""Pharaoh's alignments, and how far they are from gold ones."""

from dataclasses import replace

import pytest

from regard.decode.results import Alignment
from regard.decode.translator import load
from regard.document.alignment import aer, aligned, read_gold, read_links, word_links
from regard.errors import DataError

GOLD = """\
我 喜欢 吃 苹果 。|I like eating apples .|0-0 1-1 2-2 3-3 4-4
他 昨天 去 了 学校 。|He went to school yesterday .|0-0 1-4 2-1 3p1 2p2 4-3 5-5
我 父亲 是 医生 。|My father is a doctor .|0-0 1-1 2-2 3-4 3p3 4-5
她 母亲 在 厨房 里 。|Her mother is in the kitchen .|0-0 1-1 2-3 2p2 4p3 3-5 3p4 5-6
他们 住 在 东京 。|They live in Tokyo .|0-0 1-1 2-2 3-3 4-4
请 打开 窗户 。|Please open the window .|0-0 1-1 2-3 2p2 3-4
我 每天 早上 喝 咖啡 。|I drink coffee every morning .|0-0 1-3 2-4 3-1 4-2 5-5
我们 明天 去 公园 。|We will go to the park tomorrow .|0-0 1-6 1p1 2-2 2p3 3-5 3p4 4-7
火车 什么 时候 到 ？|When will the train arrive ?|0-3 0p2 1-0 2-0 3-4 3p1 4-5
他 会 弹 钢琴 。|He can play the piano .|0-0 1-1 2-2 3-4 3p3 4-5
"""


def test_the_error_rate_is_that_of_a_worked_example():
    # Och and Ney: A has 3 links, 2 of them sure and 3 possible; there are 4 sure ones.
    [gold] = read_gold(["0-0 1-1 2-2 3-3 1p2"], "gold")
    [ours] = read_links(["0-0 1-1 1-2"], "ours")
    assert aer([ours], [gold]) == pytest.approx(1 - (2 + 3) / (3 + 4))
    assert aer([gold.sure], [gold]) == 0.0
    assert aer([frozenset({(9, 9)})], [gold]) == 1.0
    assert aer([], []) == 0.0


def test_links_are_read_as_they_are_written_and_others_are_refused():
    assert read_links(["0-0 12-3", ""], "a") == [{(0, 0), (12, 3)}, set()]
    assert read_gold(["1?2 3p4 5-6"], "a")[0].sure == {(5, 6)}
    with pytest.raises(DataError) as refused:
        read_gold(["0-0", "1:2"], "gold.txt")
    assert str(refused.value) == (
        "gold.txt, line 2: 1:2 is no link; write source-target, as in 3-4, or 3p4 for one that is "
        "possible"
    )


def test_pieces_become_words_and_a_piece_of_two_words_is_dealt_out_in_order():
    alignment = Alignment(("▁我的", "朋友"), ("▁My", "▁fri", "end"), ((0, 0), (1, 1), (1, 2)))
    assert word_links(alignment, "我 的 朋友", "My friend") == {(0, 0), (1, 0), (2, 1)}
    both = Alignment(("▁这本书",), ("▁This", "▁book"), ((0, 0), (0, 1)))
    assert word_links(both, "这 书", "This book") == {(0, 0), (1, 1)}


def test_the_attention_of_a_real_model_is_near_to_gold(request):
    model = load(request.path.parents[1] / "models" / "tatoeba-zh-en")
    rows = [line.split("|") for line in GOLD.splitlines()]
    ours = [word_links(aligned(model, src, tgt), src, tgt) for src, tgt, _ in rows]
    gold = read_gold([links for _, _, links in rows], "gold")
    assert aer(ours, gold) < 0.2
    assert aer(ours[1:] + ours[:1], gold) > 0.5  # and not by chance


def test_shares_say_more_than_links_and_agree_with_them(model):
    search = replace(model.search, wants_attention=True)
    said = model.translate("我父亲是医生。", search=search)
    found = said.alignment
    for tgt in range(len(found.tgt_pieces)):
        own = {src: share for src, place, share in found.shares if place == tgt}
        assert own
        assert 0.0 < sum(own.values()) < 1.0 + 1e-4
        assert (max(own, key=own.get), tgt) in found.links
    assert "shares" not in said.as_table()["alternatives"][0]["alignment"]
