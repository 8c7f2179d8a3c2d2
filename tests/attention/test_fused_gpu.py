"""The fast paths on a GPU equal the definition in float64: padded and packed, whole and half."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from regard.attention import (
    Blocks,
    Causal,
    CrossAttention,
    Packed,
    SelfAttention,
    attend,
    causal_mask,
    dense,
    padding_mask,
)
from regard.attention.scores import make_score
from regard.config import ModelConfig
from regard.model import build_model

pytestmark = pytest.mark.gpu

SCORES = ["scaled_dot", "dot", "additive", "gaussian"]
BOUNDS = {torch.bfloat16: 2e-2, torch.float16: 5e-3, torch.float32: 1e-3}
D_HEAD = 32


def heads(*shape, dtype):
    return torch.randn(*shape, D_HEAD, device="cuda", dtype=dtype, requires_grad=True)


def assert_equals_the_definition(name, query, key, value, mask):
    score = make_score(name, n_heads=4, d_head=D_HEAD).cuda()
    ours = score.attend(query, key, value, mask, 0.0)
    exact = [x.detach().double().requires_grad_() for x in (query, key, value)]
    written_out = dense(mask, query.shape[-2], key.shape[-2], query.device)
    truth = attend(*exact, score.double(), written_out).output
    # gradients in units of the output, so that dot products of any size compare alike
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours * weight.to(ours)).sum(), (query, key, value))
    right = torch.autograd.grad((truth * weight).sum(), exact)
    for a, b in zip((ours, *mine), (truth, *right), strict=True):
        assert a.isfinite().all()
        assert (a.double() - b).norm() / b.norm() < BOUNDS[query.dtype]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("kind", ["none", "causal", "dense causal", "padding", "no keys"])
def test_padded_rows(name, dtype, kind):
    masks = {
        "none": None,
        "causal": Causal(),
        "dense causal": causal_mask(40, device="cuda"),
        "padding": padding_mask(torch.tensor([1, 17, 40], device="cuda"), 40)[:, None],
        "no keys": padding_mask(torch.tensor([0, 17, 40], device="cuda"), 40)[:, None],
    }
    query, key, value = (heads(3, 4, 40, dtype=dtype) for _ in range(3))
    assert_equals_the_definition(name, query, key, value, masks[kind])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_packed_rows(name, dtype, kind):
    lens = torch.randint(1, 60, (20,)).tolist()
    own = Packed.of(lens, n_tokens=1300, n_slots=48, max_len=64, device="cuda")
    key_lens = torch.randint(0, 60, (20,)).tolist()
    other = Packed.of(key_lens, n_tokens=1280, n_slots=48, max_len=64, device="cuda")
    mask = Blocks(own, other if kind == "cross" else own, causal=kind == "causal")
    n_keys = 1280 if kind == "cross" else 1300
    query, key, value = (heads(4, n, dtype=dtype) for n in (1300, n_keys, n_keys))
    assert_equals_the_definition(name, query, key, value, mask)


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", ["scaled_dot", "additive"])
def test_packed_rows_of_any_length(name, dtype, kind):
    longest = 1024 if name == "scaled_dot" else 300  # the definition of the other is large
    lens = [longest, *torch.randint(1, longest, (6,)).tolist(), 1, 2, 3]
    own = Packed.of(lens, n_tokens=7 * longest, n_slots=64, max_len=longest, device="cuda")
    other = Packed.of(lens[::-1], n_tokens=7 * longest, n_slots=64, max_len=longest, device="cuda")
    mask = Blocks(own, other if kind == "cross" else own, causal=kind == "causal")
    query, key, value = (heads(4, 7 * longest, dtype=dtype) for _ in range(3))
    assert_equals_the_definition(name, query, key, value, mask)


@pytest.mark.parametrize("name", ["scaled_dot", "additive"])
def test_dropout_in_packed_rows_is_the_same_on_the_way_back(name):
    """The output is linear in the values, and its slope in the queries a difference quotient."""
    score = make_score(name, n_heads=4, d_head=D_HEAD).cuda()
    layout = Packed.of([40, 7, 90], n_tokens=160, n_slots=9, max_len=90, device="cuda")
    mask = Blocks(layout, layout, causal=True)
    query, key, value = (heads(4, 160, dtype=torch.float32) for _ in range(3))
    weight, direction = torch.randn(2, 4, 160, D_HEAD, device="cuda")

    def output(query):
        torch.manual_seed(5)
        return (score.attend(query, key, value, mask, 0.3) * weight).double().sum()

    total = output(query)
    d_query, d_value = torch.autograd.grad(total, (query, value))
    torch.testing.assert_close((d_value * value).sum().double(), total, rtol=1e-3, atol=1e-2)
    step = 1e-2 * direction
    slope = (output(query + step) - output(query - step)) / 2
    torch.testing.assert_close((d_query * step).sum().double(), slope, rtol=2e-2, atol=1e-3)
    kept = score.attend(query, key, torch.ones_like(value), mask, 0.3).detach()
    assert 0.9 < float(kept.mean()) < 1.1
    assert float(kept.std()) > 0.05


@pytest.mark.parametrize("score", ["scaled_dot", "gaussian", "additive"])
def test_a_compiled_packed_training_pass_equals_padded_rows_and_is_compiled_once(score):
    torch._dynamo.reset()
    config = ModelConfig(d_model=128, n_heads=4, n_layers=2, d_ff=256, dropout=0.0, score=score)
    model = build_model(config, 500, 500).cuda()
    counter = CompileCounterWithBackend("inductor")
    forward = torch.compile(model, backend=counter, fullgraph=True, dynamic=False)
    for _ in range(3):
        lens = torch.randint(1, 30, (12,)).tolist()
        layout = Packed.of(lens, n_tokens=400, n_slots=40, max_len=32, device="cuda")
        ids = torch.randint(0, 500, (400,), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = forward(ids, ids, layout, layout)[: sum(lens)]
        mine = torch.autograd.grad(logits.float().square().mean(), model.source.weight)[0]
        start, expected = 0, []
        for n in lens:
            one = ids[start : start + n][None]
            expected.append(model(one, one)[0])
            start += n
        expected = torch.cat(expected)
        right = torch.autograd.grad(expected.square().mean(), model.source.weight)[0]
        assert (logits - expected).norm() / expected.norm() < 2e-2
        assert (mine - right).norm() / right.norm() < 5e-2
    assert counter.frame_count == 1


def test_a_compiled_step_with_fixed_memory_goes_on_without_recompiling():
    torch._dynamo.reset()
    model = build_model(ModelConfig(d_model=128, n_heads=4, n_layers=2, d_ff=256), 500, 500)
    model = model.cuda().eval()
    counter = CompileCounterWithBackend("inductor")
    step = torch.compile(model.step, backend=counter, fullgraph=True)
    src_ids, tgt_ids = torch.randint(0, 500, (2, 8, 16), device="cuda")
    expected = model(src_ids, tgt_ids)
    with torch.no_grad():
        state = model.start(model.encode(src_ids), max_len=16)
        for t in range(16):
            logits, state = step(tgt_ids[:, t], state)
            torch.testing.assert_close(logits, expected[:, t], rtol=1e-3, atol=1e-3)
    assert counter.frame_count == 1


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_compiled_gradients_of_one_projection_are_not_put_together_again(monkeypatch, kind):
    """They lie side by side already; the compiler sees that, and the weights' gradient is right."""
    from torch._inductor.graph import GraphLowering

    seen = []
    begin = GraphLowering.__init__

    def watched(self, graph, *rest, **named):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        begin(self, graph, *rest, **named)

    monkeypatch.setattr(GraphLowering, "__init__", watched)
    own, other = (
        Packed.of(lens, n_tokens=sum(lens) + 3, n_slots=5, max_len=16, device="cuda")
        for lens in ([3, 9, 5], [7, 2, 11])
    )
    mask = Blocks(own, own if kind == "self" else other)
    module = (SelfAttention if kind == "self" else CrossAttention)(64, 2).cuda()
    x, memory = torch.randn(20, 64, device="cuda"), torch.randn(23, 64, device="cuda")

    def loss(x, memory):
        given = (x, mask) if kind == "self" else (x, memory, mask)
        return module(*given).output.square().sum()

    loss(x, memory).backward()
    plain = [weight.grad.clone() for weight in module.parameters()]
    module.zero_grad()
    torch.compile(loss)(x, memory).backward()
    compiled = [weight.grad for weight in module.parameters()]
    torch.testing.assert_close(compiled, plain, rtol=1e-3, atol=1e-3)
    assert any("short_attention_backward" in name for name in seen)
    assert not any("aten.cat" in name for name in seen)
