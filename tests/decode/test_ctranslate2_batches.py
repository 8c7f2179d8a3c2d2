"""How sentences are put together for CTranslate2's threads."""

from pathlib import Path

import pytest

from regard.bundle import open_bundle
from regard.decode.engines.ctranslate2 import CTranslate2Engine

SMALL = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


@pytest.mark.parametrize(
    ("n", "beam", "sizes"),
    [
        (10, 1, [10]),  # too few to share
        (40, 1, [20, 20]),  # one for each of two threads
        (143, 1, [36, 36, 36, 35]),  # two for each, of one size
        (143, 5, [36, 36, 36, 35]),
        (500, 1, [63] * 7 + [59]),  # no larger than is of use
        (500, 20, [16] * 31 + [4]),  # nor than there is room for hypotheses
    ],
)
def test_threads_share_sentences_evenly(n, beam, sizes):
    engine = CTranslate2Engine(open_bundle(SMALL), threads=2)
    lens = [1 + 7 * place % 10 for place in range(n)]
    batches = list(engine._batches(range(n), lens, beam))
    assert sorted(place for batch in batches for place in batch) == list(range(n))
    assert [len(batch) for batch in batches] == sizes
    ordered = [lens[place] for batch in batches for place in batch]
    assert ordered == sorted(lens, reverse=True)
    long = list(engine._batches(range(n), [300] * n, beam))
    assert max(map(len, long)) * 300 <= 1024
