"""What holds for every network: the Transformer with each of its choices, and Bahdanau's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounter

from regard.attention import Packed, Padded
from regard.config import ModelConfig
from regard.errors import DataError
from regard.model import build_model

WORDS = 30
SMALL = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 32, "max_len": 40}

NETWORKS = {
    "post-norm": {},
    "pre-norm": {"norm": "pre", "activation": "swish", "output_bias": True},
    "rotary": {"positions": "rotary", "share": "none"},
    "learned": {"positions": "learned", "share": "target", "scale_embeddings": False},
    "dot": {"score": "dot"},
    "additive": {"score": "additive"},
    "gaussian": {"score": "gaussian", "positions": "rotary"},
    "uneven": {"n_layers": (2, 1), "n_heads": (4, 2), "d_ff": (32, 8)},
    "recurrent": {"kind": "recurrent", "n_layers": (2, 1)},
}
TRANSFORMERS = [name for name in NETWORKS if name != "recurrent"]


def network(name, **more):
    torch.manual_seed(3)
    return build_model(ModelConfig(**{**SMALL, **NETWORKS[name], **more}), WORDS, WORDS).eval()


def sentences(lens):
    return [torch.randint(0, WORDS, (n,)) for n in lens]


def padded(rows, width, filler=0):
    """Rows filled up to a width with any word at all."""
    ids = torch.full((len(rows), width), filler)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return ids, Padded(torch.tensor([len(row) for row in rows]))


lengths = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4)


@pytest.mark.parametrize("name", NETWORKS)
@given(pairs=lengths, extra=st.integers(0, 5), filler=st.integers(0, WORDS - 1))
def test_a_batch_equals_one_by_one_whatever_the_padding(name, pairs, extra, filler):
    model = network(name)
    sources, targets = sentences([s for s, _ in pairs]), sentences([t for _, t in pairs])
    src_ids, src = padded(sources, 6 + extra, filler)
    tgt_ids, tgt = padded(targets, 6 + extra, filler)
    batch = model(src_ids, tgt_ids, src, tgt)
    for row, source, target in zip(batch, sources, targets, strict=True):
        alone = model(source[None], target[None])
        torch.testing.assert_close(row[: len(target)], alone[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
@given(pairs=lengths)
def test_packed_equals_padded_in_values_and_gradients(name, pairs):
    model = network(name).double()
    sources, targets = sentences([s for s, _ in pairs]), sentences([t for _, t in pairs])
    src_ids, src = padded(sources, 6)
    tgt_ids, tgt = padded(targets, 6)
    rows = model(src_ids, tgt_ids, src, tgt)
    expected = torch.cat([row[: len(t)] for row, t in zip(rows, targets, strict=True)])

    src_row, src_packed = packed(sources)
    tgt_row, tgt_packed = packed(targets)
    row = model(src_row, tgt_row, src_packed, tgt_packed)
    assert row.isfinite().all()
    row = row[: len(expected)]

    torch.testing.assert_close(row, expected)
    parameters = [p for p in model.parameters() if p.requires_grad]
    mine = torch.autograd.grad(row.square().sum(), parameters)
    torch.testing.assert_close(mine, torch.autograd.grad(expected.square().sum(), parameters))


def packed(rows):
    """Sentences end to end, with three tokens nobody needs and slots to spare."""
    lens = [len(row) for row in rows]
    ids = torch.cat([*rows, torch.zeros(3, dtype=torch.int64)])
    return ids, Packed.of(lens, n_tokens=len(ids), n_slots=len(rows) + 4, max_len=6)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_empty_source_says_nothing_whatever_lies_around_it(name):
    model, target = network(name), torch.randint(0, WORDS, (1, 4))
    answers = []
    for filler in (0, 7):
        ids, empty = torch.full((1, 3), filler), Padded(torch.tensor([0]))
        answers.append(model(ids, target, empty)[0])
        src = Packed.of([0, 3], n_tokens=3, n_slots=2, max_len=4)
        tgt = Packed.of([4, 4], n_tokens=8, n_slots=2, max_len=4)
        answers.append(model(ids[0], torch.cat([target[0]] * 2), src, tgt)[:4])
    for answer in answers[1:]:
        torch.testing.assert_close(answer, answers[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
@given(place=st.integers(0, 5), word=st.integers(0, WORDS - 1))
def test_a_future_word_changes_nothing_before_it(name, place, word):
    model = network(name)
    src_ids, tgt_ids = torch.randint(0, WORDS, (2, 5)), torch.randint(0, WORDS, (2, 6))
    before = model(src_ids, tgt_ids)
    changed = tgt_ids.clone()
    changed[:, place] = (changed[:, place] + 1 + word % (WORDS - 1)) % WORDS
    after = model(src_ids, changed)
    torch.testing.assert_close(after[:, :place], before[:, :place])
    assert not torch.allclose(after[:, place], before[:, place])


@pytest.mark.parametrize("name", NETWORKS)
def test_every_word_before_and_the_whole_source_are_seen(name):
    model = network(name)
    src_ids, tgt_ids = torch.randint(1, WORDS, (1, 5)), torch.randint(1, WORDS, (1, 6))
    before = model(src_ids, tgt_ids)[0, -1]
    for place in range(5):
        other_src, other_tgt = src_ids.clone(), tgt_ids.clone()
        other_src[0, place], other_tgt[0, place] = 0, 0
        assert not torch.allclose(model(other_src, tgt_ids)[0, -1], before, atol=1e-6)
        assert not torch.allclose(model(src_ids, other_tgt)[0, -1], before, atol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("max_len", [None, 8])
@pytest.mark.parametrize("layout", ["none", "padded", "packed"])
def test_steps_equal_teacher_forcing(name, max_len, layout):
    model = network(name)
    lens = [5, 5, 5] if layout == "none" else [4, 1, 5]
    sources, tgt_ids = sentences(lens), torch.randint(0, WORDS, (3, 6))
    src_ids, src = padded(sources, 5)
    expected = model(src_ids, tgt_ids, src)
    match layout:
        case "none":
            memory = model.encode(src_ids)
        case "padded":
            memory = model.encode(src_ids, src)
        case "packed":
            row = torch.cat(sources)
            memory = model.encode(row, Packed.of(lens, n_tokens=10, n_slots=3, max_len=5))
    with torch.no_grad():
        state = model.start(memory, max_len=max_len)
        for t in range(6):
            logits, state = model.step(tgt_ids[:, t], state)
            torch.testing.assert_close(logits, expected[:, t], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("max_len", [None, 8])
@given(rows=st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_reordered_rows_go_on_as_the_rows_they_were(name, max_len, rows):
    model = network(name)
    src_ids, src = padded(sentences([4, 2, 5]), 5)
    tgt_ids, order = torch.randint(0, WORDS, (3, 4)), torch.tensor(rows)
    with torch.no_grad():
        state = model.start(model.encode(src_ids, src), max_len=max_len)
        for t in range(2):
            _, state = model.step(tgt_ids[:, t], state)
        state = state.reorder(order, order)
        after = []
        for t in (2, 3):
            logits, state = model.step(tgt_ids[:, t], state)
            after.append(logits)
    words = torch.cat([tgt_ids[order, :2], tgt_ids[:, 2:]], dim=1)
    expected = model(src_ids[order], words, Padded(src.lens[order]))[:, 2:]
    torch.testing.assert_close(torch.stack(after, dim=1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_growing_state_may_lose_sentences_and_repeat_rows(name):
    model = network(name)
    src_ids, src = padded(sentences([4, 2, 5]), 5)
    tgt_ids = torch.randint(0, WORDS, (3, 1))
    kept, rows = torch.tensor([2, 0]), torch.tensor([2, 2, 2, 0, 0, 0])
    with torch.no_grad():
        state = model.start(model.encode(src_ids, src)).reorder(rows, kept)
        logits, _ = model.step(tgt_ids[rows, 0], state)
    expected = model(src_ids, tgt_ids, src)[:, 0]
    torch.testing.assert_close(logits, expected[rows], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_hypotheses_of_one_sentence_share_its_memory_and_keep_their_own_words(name):
    model = network(name)
    src_ids, src = padded(sentences([4, 2]), 4)
    tgt_ids = torch.randint(0, WORDS, (6, 4))
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    with torch.no_grad():
        state = model.start(model.encode(src_ids, src)).reorder(rows)
        memory = state.memory if name in TRANSFORMERS else [(state.key, state.value)]
        assert all(len(tensor) == 2 for pair in memory for tensor in pair)
        said = []
        for t in range(4):
            logits, state = model.step(tgt_ids[:, t], state)
            said.append(logits)
    expected = model(src_ids[rows], tgt_ids, Padded(src.lens[rows]))
    torch.testing.assert_close(torch.stack(said, dim=1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_explaining_changes_no_logit_and_shows_every_weight(name):
    model = network(name)
    src_ids, src = padded(sentences([4, 2]), 4)
    tgt_ids, tgt = padded(sentences([3, 3]), 3)
    explained = model.explain(src_ids, tgt_ids, src, tgt)
    torch.testing.assert_close(explained.logits, model(src_ids, tgt_ids, src, tgt))
    shown = [explained.cross, explained.encoder, explained.decoder]
    for weights in shown if name in TRANSFORMERS else shown[:1]:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert explained.cross[:, 1, :, :, 2:].abs().max() == 0.0
    if name in TRANSFORMERS:
        assert explained.encoder.shape == (2, 2, 4, 4, 4)
        assert explained.encoder[:, 1, :, :, 2:].abs().max() == 0.0
        assert explained.decoder.triu(1).abs().max() == 0.0
    else:
        assert explained.encoder is None
        assert explained.decoder is None
        assert explained.cross.shape == (1, 2, 1, 3, 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_ids_that_are_no_words_are_refused(name):
    model, fine = network(name), torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(DataError, match=r"^source id 30 is outside the vocabulary"):
        model(fine + 30, fine)
    with pytest.raises(DataError, match=r"^target id -1 is outside the vocabulary"):
        model(fine, fine - 1)


@pytest.mark.plain
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_and_layouts_are_checked_too(name):
    model, ids = network(name), torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(DataError, match=r"^target id 30 is outside the vocabulary"):
        model.step(ids[:, 0] + 30, model.start(model.encode(ids)))
    with pytest.raises(DataError, match=r"^source has 2 sentences but 1 lengths$"):
        model(ids, ids, Padded(torch.tensor([3])))
    with pytest.raises(DataError, match=r"^target has a sentence of length 4 in rows of 3 tokens"):
        model(ids, ids, None, Padded(torch.tensor([3, 4])))
    with pytest.raises(DataError, match=r"^there are 2 source sentences but 1 target sentences$"):
        model(ids, ids[:1])


@pytest.mark.parametrize("name", NETWORKS)
def test_packed_rows_are_explained_as_padded_ones(name):
    model, rows = network(name), sentences([3, 5])
    ids, layout = padded(rows, 5)
    one_row, packed_layout = torch.cat(rows), Packed.of([3, 5], n_tokens=8, n_slots=2, max_len=5)
    mine = model.explain(one_row, one_row, packed_layout, packed_layout)
    right = model.explain(ids, ids, layout, layout)
    torch.testing.assert_close(mine.cross[:, 0, :, :3], right.cross[:, 0, :, :3])
    torch.testing.assert_close(mine.cross[:, 1], right.cross[:, 1])
    torch.testing.assert_close(mine.logits[1], right.logits[1])


@pytest.mark.parametrize("name", NETWORKS)
def test_dropout_acts_in_training_and_not_in_use(name):
    model = network(name, dropout=0.5)
    ids = torch.randint(0, WORDS, (2, 5))
    torch.testing.assert_close(model(ids, ids), model(ids, ids))
    model.train()
    assert not torch.allclose(model(ids, ids), model(ids, ids))


@pytest.mark.plain
@pytest.mark.parametrize("name", ["post-norm", "rotary"])
def test_a_step_with_fixed_memory_is_compiled_once(name):
    model, counter = network(name), CompileCounter()
    step = torch.compile(model.step, backend=counter, fullgraph=True)
    src_ids, src = padded(sentences([4, 2]), 4)
    tgt_ids = torch.randint(0, WORDS, (2, 12))
    expected = model(src_ids, tgt_ids, src)
    with torch.no_grad():
        state = model.start(model.encode(src_ids, src), max_len=12)
        for t in range(12):
            logits, state = step(tgt_ids[:, t], state)
            torch.testing.assert_close(logits, expected[:, t], rtol=1e-4, atol=1e-5)
    assert counter.frame_count == 1


@pytest.mark.plain
@pytest.mark.parametrize("name", ["post-norm", "additive"])
def test_a_packed_pass_of_one_shape_is_compiled_once(name):
    model, counter = network(name), CompileCounter()
    forward = torch.compile(model, backend=counter, fullgraph=True, dynamic=False)
    with torch.no_grad():
        for lens in ([5, 3], [2, 2, 4], [1, 1, 1, 1, 1], [6, 6]):
            ids = torch.randint(0, WORDS, (12,))
            layout = Packed.of(lens, n_tokens=12, n_slots=8, max_len=6)
            expected = model(ids, ids, layout, layout)
            torch.testing.assert_close(
                forward(ids, ids, layout, layout), expected, rtol=1e-4, atol=1e-5
            )
    assert counter.frame_count == 1
