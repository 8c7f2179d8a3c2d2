"""The notes' own classes and ours, on the same numbers.

As printed, three of the four do not run; where one was completed, a comment says how. Their names,
layout and comments in Chinese are the notes'.
"""

import math

import pytest
import torch
from torch import nn

from regard.attention import (
    AdditiveAttention,
    GaussianAttention,
    SelfAttention,
    attend,
    scaled_dot_scores,
    valid_lens_mask,
)

VALID_LENS = [None, torch.tensor([2, 4]), torch.tensor([[1, 2, 3], [4, 2, 1]])]


# Completed: notes 000 and 002 call `masked_softmax` and say "遮掩无意义词元，使用大负数替代"
# (replace what is masked by a large negative number), but do not print it; `valid_lens`
# is explained in the comments of note 002's MultiHeadAttention.
def masked_softmax(scores, valid_lens):
    if valid_lens is None:
        return nn.functional.softmax(scores, dim=-1)
    lens = valid_lens if valid_lens.dim() == 2 else valid_lens[:, None].expand(-1, scores.shape[1])
    hidden = torch.arange(scores.shape[-1])[None, None, :] >= lens[:, :, None]
    return nn.functional.softmax(scores.masked_fill(hidden, -1e6), dim=-1)


# Note 000. Completed: the print mixes tabs and spaces, which Python refuses, and `masked_softmax`.
class NotesAdditiveAttention(nn.Module):
    def __init__(self, key_size, query_size, num_hiddens, dropout):
        super().__init__()
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = queries.unsqueeze(2) + keys.unsqueeze(1)
        features = torch.tanh(features)
        scores = self.W_v(features).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


# Note 002. Runs as printed.
class NWKernelRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand((1,), requires_grad=True))

    def forward(self, queries, keys, values):
        queries = queries.repeat_interleave(keys.shape[1]).reshape((-1, keys.shape[1]))
        self.attention_weights = nn.functional.softmax(
            -(((queries - keys) * self.w) ** 2) / 2, dim=1
        )
        return torch.bmm(self.attention_weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)


# Note 002. Completed: `d2l.DotProductAttention`, `transpose_qkv` and `transpose_output` are named
# but not printed; the comments give their shapes, and the text the formula.
class NotesDotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


def transpose_qkv(x, num_heads):
    x = x.reshape(x.shape[0], x.shape[1], num_heads, -1).permute(0, 2, 1, 3)
    return x.reshape(-1, x.shape[2], x.shape[3])


def transpose_output(x, num_heads):
    x = x.reshape(-1, num_heads, x.shape[1], x.shape[2]).permute(0, 2, 1, 3)
    return x.reshape(x.shape[0], x.shape[1], -1)


class NotesMultiHeadAttention(nn.Module):
    """多头注意力"""

    def __init__(
        self, key_size, query_size, value_size, num_hiddens, num_heads, dropout, bias=False
    ):
        super().__init__()
        self.num_heads = num_heads
        self.attention = NotesDotProductAttention(dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=bias)
        self.W_v = nn.Linear(value_size, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def forward(self, queries, keys, values, valid_lens):
        queries = transpose_qkv(self.W_q(queries), self.num_heads)
        keys = transpose_qkv(self.W_k(keys), self.num_heads)
        values = transpose_qkv(self.W_v(values), self.num_heads)
        if valid_lens is not None:
            valid_lens = torch.repeat_interleave(valid_lens, repeats=self.num_heads, dim=0)
        output = self.attention(queries, keys, values, valid_lens)
        output_concat = transpose_output(output, self.num_heads)
        return self.W_o(output_concat)


# Note 004. Completed: the print ends at "# Get values by attention", and it declares `values`,
# `keys` and `queries` as linear maps but never applies them; the first step of the note's own
# section 3 (线性投影) and its formula head_i = Attention(XW^Q, XW^K, XW^V) say where they go.
class NotesSelfAttention(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.embed_size = embed_size
        self.heads = heads
        self.head_dim = embed_size // heads
        self.values = nn.Linear(embed_size, embed_size)
        self.keys = nn.Linear(embed_size, embed_size)
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask):
        N = query.shape[0]
        value_len, key_len, query_len = values.shape[1], keys.shape[1], query.shape[1]
        values, keys, query = self.values(values), self.keys(keys), self.queries(query)
        values = values.reshape(N, value_len, self.heads, self.head_dim).permute(0, 2, 1, 3)
        keys = keys.reshape(N, key_len, self.heads, self.head_dim).permute(0, 2, 1, 3)
        queries = query.reshape(N, query_len, self.heads, self.head_dim).permute(0, 2, 1, 3)
        energy = torch.matmul(queries, keys.permute(0, 1, 3, 2)) / math.sqrt(self.head_dim)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e10)
        attention = torch.softmax(energy, dim=-1)
        out = torch.matmul(attention, values).permute(0, 2, 1, 3)
        return self.fc_out(out.reshape(N, query_len, self.embed_size))


@pytest.mark.parametrize("valid_lens", VALID_LENS)
def test_additive_attention_of_note_000(valid_lens):
    notes = NotesAdditiveAttention(key_size=5, query_size=7, num_hiddens=6, dropout=0.1).eval()
    ours = AdditiveAttention(d_query=7, d_key=5, d_hidden=6, dropout=0.1).eval()
    ours.query.weight = notes.W_q.weight
    ours.key.weight = notes.W_k.weight
    ours.v.data = notes.W_v.weight.data[0]
    queries, keys, values = torch.randn(2, 3, 7), torch.randn(2, 4, 5), torch.randn(2, 4, 2)
    mask = None if valid_lens is None else valid_lens_mask(valid_lens, 4)
    attended = ours(queries, keys, values, mask)
    torch.testing.assert_close(attended.output, notes(queries, keys, values, valid_lens))
    torch.testing.assert_close(attended.weights, notes.attention_weights)


def test_kernel_regression_of_note_002():
    notes = NWKernelRegression()
    ours = GaussianAttention()
    ours.w.data = notes.w.data[0]
    queries, keys, values = torch.randn(6), torch.randn(5), torch.randn(5)
    attended = ours(queries[:, None], keys[:, None], values[:, None])
    expected = notes(queries, keys.repeat(6, 1), values.repeat(6, 1))
    torch.testing.assert_close(attended.output[:, 0], expected)
    torch.testing.assert_close(attended.weights, notes.attention_weights)


@pytest.mark.parametrize(
    "valid_lens", [None, torch.tensor([2, 4]), torch.tensor([[1, 2, 3, 4]] * 2)]
)
def test_multi_head_attention_of_note_002(valid_lens):
    notes = NotesMultiHeadAttention(12, 12, 12, 12, num_heads=3, dropout=0.5).eval()
    ours = SelfAttention(12, 3, dropout=0.5, bias=False).eval()
    ours.qkv.weight.data = torch.cat([notes.W_q.weight, notes.W_k.weight, notes.W_v.weight])
    ours.out.weight = notes.W_o.weight
    x = torch.randn(2, 4, 12)
    mask = None if valid_lens is None else valid_lens_mask(valid_lens, 4)
    attended = ours(x, mask, wants_weights=True)
    torch.testing.assert_close(attended.output, notes(x, x, x, valid_lens))
    torch.testing.assert_close(attended.weights.flatten(0, 1), notes.attention.attention_weights)


def test_self_attention_of_note_004():
    notes, ours = NotesSelfAttention(12, 3), SelfAttention(12, 3)
    ours.qkv.weight.data = torch.cat([notes.queries.weight, notes.keys.weight, notes.values.weight])
    ours.qkv.bias.data = torch.cat([notes.queries.bias, notes.keys.bias, notes.values.bias])
    ours.out.load_state_dict(notes.fc_out.state_dict())
    x, mask = torch.randn(2, 4, 12), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    expected = notes(x, x, x, mask[:, None, None, :])
    torch.testing.assert_close(ours(x, mask.bool()[:, None]).output, expected)


def test_where_the_notes_mask_makes_a_row_uniform_ours_makes_it_zero():
    """With -1e10 a query that may attend to nothing attends to everything alike."""
    notes, x = NotesSelfAttention(4, 1), torch.randn(1, 2, 4)
    nothing = torch.zeros(1, 1, 1, 2)
    value = notes.values(x)
    torch.testing.assert_close(
        notes(x, x, x, nothing), notes.fc_out(value.mean(1, keepdim=True).expand(1, 2, 4))
    )
    ours = attend(notes.queries(x), notes.keys(x), value, scaled_dot_scores, nothing[0].bool())
    assert ours.output.abs().max() == 0.0
