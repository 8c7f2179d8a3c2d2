import pytest
import torch

from regard.attention import FixedKVCache, KVCache
from regard.attention.cache import Lineage, SlotKVCache

LIKE = torch.zeros(3, 2, 7, 4)
EMPTY = {"growing": lambda: KVCache.empty(LIKE), "fixed": lambda: FixedKVCache.empty(LIKE, 6)}


@pytest.mark.parametrize("kind", EMPTY)
def test_appended_keys_and_values_come_back_in_order(kind):
    cache = EMPTY[kind]()
    keys, values = torch.randn(3, 2, 5, 4), torch.randn(3, 2, 5, 4)
    for start, end in ((0, 2), (2, 3), (3, 5)):
        assert cache.positions(end - start).tolist() == list(range(start, end))
        cache = cache.append(keys[:, :, start:end], values[:, :, start:end])
    assert torch.equal(cache.key[:, :, :5], keys)
    assert torch.equal(cache.value[:, :, :5], values)


@pytest.mark.parametrize("kind", EMPTY)
def test_new_tokens_see_themselves_and_all_before_and_nothing_after(kind):
    cache = EMPTY[kind]()
    some = torch.randn(3, 2, 3, 4)
    cache = cache.append(some, some).append(some[:, :, :2], some[:, :, :2])
    n_keys = cache.key.shape[-2]
    expected = [[place <= query for place in range(n_keys)] for query in (3, 4)]
    assert cache.visible(2).tolist() == expected


def test_one_new_token_sees_all_of_a_growing_cache():
    some = torch.randn(3, 2, 3, 4)
    assert KVCache.empty(LIKE).append(some, some).visible(1) is None


@pytest.mark.parametrize("kind", EMPTY)
def test_reordering_moves_rows_of_keys_and_of_values(kind):
    keys, values = torch.randn(3, 2, 2, 4), torch.randn(3, 2, 2, 4)
    cache = EMPTY[kind]().append(keys, values).reorder(torch.tensor([2, 2, 0]))
    assert torch.equal(cache.key[:, :, :2], keys[[2, 2, 0]])
    assert torch.equal(cache.value[:, :, :2], values[[2, 2, 0]])
    assert cache.positions(1).tolist() == [2]


def test_a_growing_cache_may_lose_rows():
    some = torch.randn(3, 2, 3, 4)
    cache = KVCache.empty(LIKE).append(some, some).reorder(torch.tensor([1]))
    assert cache.key.shape[0] == 1


def test_appending_to_a_growing_cache_leaves_the_shorter_one_as_it_was():
    some = torch.randn(3, 2, 1, 4)
    short = KVCache.empty(LIKE).append(some, some)
    short.append(2 * some, 2 * some)
    assert torch.equal(short.key, some)


def test_a_fixed_cache_keeps_its_memory():
    some = torch.randn(3, 2, 1, 4)
    cache = FixedKVCache.empty(LIKE, 6)
    later = cache.append(some, some).reorder(torch.tensor([1, 0, 2])).append(some, some)
    assert later.key.data_ptr() == cache.key.data_ptr()
    assert later.value.data_ptr() == cache.value.data_ptr()


def test_rows_of_a_slot_cache_are_each_at_their_own_place():
    tokens = torch.randn(6, 2, 1, 4)
    lineage = Lineage.empty(n_rows=2, max_len=3, device=tokens.device)
    cache = SlotKVCache.empty(tokens, lineage)
    stay = torch.tensor([0, 1]), torch.tensor([True, True])
    for first, second in ((0, 3), (1, 4)):
        cache.append(tokens[[first, second]], -tokens[[first, second]])
        lineage.follow(*stay)
    lineage.begin_anew(torch.tensor([0]))
    assert cache.positions(1).tolist() == [[0], [2]]
    cache.append(tokens[[2, 5]], -tokens[[2, 5]])
    assert cache.visible(1).tolist() == [[[True, False, False]], [[True, True, True]]]
    assert torch.equal(cache.key[0, :, :1], tokens[2])
    assert torch.equal(cache.key[1], tokens[3:].squeeze(2).transpose(0, 1))
    assert torch.equal(cache.value[1], -cache.key[1])

    lineage.follow(*stay)
    cache.append(tokens[[0, 1]], tokens[[0, 1]])  # the second is full, and writes over its last
    assert torch.equal(cache.key[1, :, 2:], tokens[1])
    lineage.follow(torch.tensor([1, 0]), torch.tensor([True, True]))
    assert lineage.lengths.tolist() == [2, 2], "the first goes on from one that is full"
    assert torch.equal(cache.key[0, :, :2], tokens[3:5].squeeze(2).transpose(0, 1))
    lineage.follow(stay[0], torch.tensor([True, False]))
    assert lineage.lengths.tolist() == [2, 0], "the second is done"


def test_some_sentences_can_go_on_by_themselves():
    """Which row wrote what stays as it was, whatever the rows are called now."""
    lineage = Lineage.empty(n_rows=6, max_len=3, device=torch.device("cpu"))
    cache = SlotKVCache.empty(torch.zeros(1, 2, 1, 4), lineage)
    for rows in ([1, 1, 2, 2, 5, 4], [0, 0, 3, 2, 4, 5]):
        token = torch.randn(6, 2, 1, 4)
        cache.append(token, -token)
        lineage.follow(torch.tensor(rows), torch.ones(6, dtype=torch.bool))
    at = torch.tensor([2, 3, 4, 5])
    alone = Lineage.empty(n_rows=4, max_len=3, device=torch.device("cpu"))
    alone.take(lineage, at, beam=2)
    few = SlotKVCache(cache.keys[at], cache.values[at], alone)
    assert torch.equal(few.key[:, :, :2], cache.key[2:, :, :2])
    assert torch.equal(few.value[:, :, :2], cache.value[2:, :, :2])
    assert few.positions(1).tolist() == [[2]] * 4
