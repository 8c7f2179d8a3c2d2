import math

import torch

from regard.attention import AdditiveAttention


def test_query_and_key_may_differ_in_width():
    attention = AdditiveAttention(d_query=3, d_key=5, d_hidden=4)
    query, key, value = torch.randn(2, 3), torch.randn(6, 5), torch.randn(6, 7)
    attended = attention(query, key, value)
    for i in range(2):
        scores = [
            sum(
                attention.v[a].item()
                * math.tanh(
                    (attention.query.weight[a] @ query[i] + attention.key.weight[a] @ k).item()
                )
                for a in range(4)
            )
            for k in key
        ]
        weights = torch.tensor(scores).softmax(-1)
        torch.testing.assert_close(attended.weights[i], weights)
        torch.testing.assert_close(attended.output[i], weights @ value)


def test_remembered_keys_serve_later_questions():
    attention = AdditiveAttention(3, 5, 4)
    query, key, value = torch.randn(2, 4, 3), torch.randn(2, 6, 5), torch.randn(2, 6, 7)
    mask = torch.rand(2, 1, 6) < 0.7
    whole = attention(query, key, value, mask)
    later = attention.recall(query[:, 2:3], attention.remember(key), value, mask)
    torch.testing.assert_close(later.output, whole.output[:, 2:3])
    torch.testing.assert_close(later.weights, whole.weights[:, 2:3])


def test_dropout_acts_in_training_only():
    attention = AdditiveAttention(3, 3, 4, dropout=0.9)
    x = torch.randn(1, 20, 3)
    assert not torch.allclose(attention(x, x, x).output, attention(x, x, x).output)
    attention.eval()
    torch.testing.assert_close(attention(x, x, x).output, attention(x, x, x).output)
