"""Search by a real network: cached and batched against no cache and one by one."""

from pathlib import Path

import pytest
import torch

from regard.attention.layout import Padded
from regard.decode.beam import beam_search
from regard.decode.reference import reference_beam
from regard.decode.translator import open_translator

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
TEXTS = ["我喜欢吃苹果。", "你今天去哪里？", "他昨天没有来上班，因为他病了。"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def translator():
    return open_translator(TATOEBA)


def test_a_cached_batched_beam_is_the_one_explained(translator):
    network = translator.network
    src, tgt = translator.bundle.src_tokenizer.vocab, translator.bundle.tgt_tokenizer.vocab
    sources = [[*translator.bundle.src_tokenizer.encode(text), src.eos] for text in TEXTS]
    width = max(map(len, sources))
    ids = torch.tensor([row + [src.pad] * (width - len(row)) for row in sources])
    lens = Padded(torch.tensor([len(row) for row in sources]))
    with torch.no_grad():
        state = network.start(network.encode(ids, lens))
    found = beam_search(
        network.step, state, 3, width=3, max_len=14, bos=tgt.bos, eos=tgt.eos, device=CPU
    )

    @torch.no_grad()
    def log_probs(source, written):
        logits = network(torch.tensor([source]), torch.tensor([[tgt.bos, *written]]))
        return logits[0, -1].log_softmax(-1).tolist()

    for source, hypotheses in zip(sources, found, strict=True):
        expected = reference_beam(
            lambda written, source=source: log_probs(source, written),
            width=3, max_len=14, eos=tgt.eos,
        )  # fmt: skip
        assert [h.ids for h in hypotheses] == [h.ids for h in expected]
        for one, other in zip(hypotheses, expected, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_text_alone_is_the_text_in_any_batch(translator, beam):
    together = translator.translate([*TEXTS, "", "好"], beam=beam)
    assert together[3] == ""
    assert together == [translator.translate([text], beam=beam)[0] for text in [*TEXTS, "", "好"]]
