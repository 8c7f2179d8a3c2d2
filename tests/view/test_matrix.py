from dataclasses import replace

import numpy as np
import pytest

from regard.errors import ConfigError
from regard.view.matrix import KINDS, Choice, matrices_of, matrix_of


def test_without_a_choice_it_is_the_mean_of_the_last_layer_of_cross_attention(attended):
    seen = attended()
    matrix = matrix_of(seen)
    assert (matrix.kind, matrix.layer, matrix.n_layers, matrix.head) == ("cross", 2, 2, None)
    expected = sum(seen.cross[1, head] for head in range(3)) / 3
    assert matrix.weights == pytest.approx(expected, abs=1e-6)
    assert matrix.queries[:4] == ("Ma", "⋅ch", "⋅ine", "learning")
    assert matrix.keys == ("␣", *seen.src_pieces[1:])


def test_layers_and_heads_count_from_one(attended):
    seen = attended()
    for layer in (1, 2, 3):
        for head in (1, 2, 3):
            matrix = matrix_of(seen, Choice("encoder", layer, head))
            assert np.array_equal(matrix.weights, seen.encoder[layer - 1, head - 1])
            assert matrix.queries == matrix.keys == ("␣", *seen.src_pieces[1:])


def test_a_step_of_the_decoder_is_named_by_what_it_writes_and_sees_what_was_written(attended):
    """Row t is given the start and the t words before it, so its last key is the word before."""
    seen = attended()
    matrix = matrix_of(seen, Choice("decoder", 1, 1))
    assert matrix.queries[0] == "Ma"
    assert matrix.keys[:2] == ("<s>", "Ma")
    assert len(matrix.keys) == len(matrix.queries) == len(seen.tgt_pieces)
    assert np.array_equal(matrix.can_see, np.tril(np.ones((10, 10), bool)))
    assert not matrix.weights[~matrix.can_see].any()


@pytest.mark.parametrize("kind", KINDS)
def test_words_sum_over_what_is_looked_at_and_average_over_who_looks(attended, kind):
    """Against a double loop over the letters of the words."""
    seen = attended()
    pieces = matrix_of(seen, Choice(kind, 1, 2))
    words = matrix_of(seen, Choice(kind, 1, 2, in_words=True))
    groups = {
        "src": [[0, 1], [2], [3], [4], [5], [6], [7]],
        "tgt": [[0, 1, 2], [3], [4], [5], [6, 7], [8], [9]],
        "given": [[0], [1, 2, 3], [4], [5], [6], [7, 8], [9]],
    }
    rows = groups["src" if kind == "encoder" else "tgt"]
    columns = groups["given" if kind == "decoder" else "src"]
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            expected = sum(pieces.weights[q, k] for q in row for k in column) / len(row)
            assert words.weights[i, j] == pytest.approx(expected, abs=1e-6)
            assert words.can_see[i, j] == any(pieces.can_see[q, k] for q in row for k in column)
    assert words.weights.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_what_is_hidden_and_what_is_shown_are_all_of_the_attention(attended):
    seen = attended()
    for in_words in (False, True):
        choice = Choice("cross", 2, 1, in_words=in_words, hides_sinks=True)
        matrix, whole = matrix_of(seen, choice), matrix_of(seen, replace(choice, hides_sinks=False))
        kept = [place for place, key in enumerate(whole.keys) if key in matrix.keys]
        assert np.array_equal(matrix.weights, whole.weights[:, kept])  # nothing is scaled up
        hidden = dict(matrix.hidden)
        assert hidden.keys() == ({"。", "</s>"} if in_words else {"␣", "。", "</s>"})
        assert hidden["</s>"] == pytest.approx(float(whole.weights[:, -1].mean()))
        rows = len(matrix.queries)
        assert sum(hidden.values()) + matrix.weights.sum() / rows == pytest.approx(1.0, abs=1e-5)
        assert list(hidden.values()) == sorted(hidden.values(), reverse=True)


def test_sinks_of_one_name_are_told_together(attended):
    matrix = matrix_of(attended(src=("▁a", ",", "▁b", ",", "</s>")), Choice(hides_sinks=True))
    assert [name for name, _ in matrix.hidden].count(",") == 1
    assert matrix.keys == ("a", "b")


def test_a_source_that_is_nothing_but_sinks_is_shown(attended):
    matrix = matrix_of(attended(src=("▁", "。", "</s>")), Choice(hides_sinks=True))
    assert matrix.keys == ("␣", "。", "</s>")
    assert matrix.hidden == ()


def test_every_head_of_every_layer_or_of_one(attended):
    seen = attended()
    rows = matrices_of(seen, Choice("encoder"))
    assert [[(m.layer, m.head) for m in row] for row in rows] == [
        [(layer, head) for head in (1, 2, 3)] for layer in (1, 2, 3)
    ]
    (row,) = matrices_of(seen, Choice("encoder", layer=2))
    assert np.array_equal(row[2].weights, seen.encoder[1, 2])


def test_the_strongest_keys_come_first_and_small_ones_only_alone(attended):
    matrix = matrix_of(attended())
    weights = np.array([[0.02, 0.5, 0.04, 0.3, 0.08, 0.06, 0.0, 0.0]], np.float32)
    matrix = replace(matrix, weights=weights)
    assert matrix.strongest(0) == [
        ("机器", pytest.approx(0.5)), ("是", pytest.approx(0.3)), ("分", pytest.approx(0.08)),
    ]  # fmt: skip
    assert len(replace(matrix, weights=weights / 20).strongest(0)) == 1


@pytest.mark.parametrize(
    ("choice", "english", "chinese"),
    [
        (Choice(layer=3), "there is no layer 3; they count from 1 to 2", "没有第3层；请从1到2中选"),
        (Choice(layer=0), "there is no layer 0; they count from 1 to 2", "没有第0层；请从1到2中选"),
        (
            Choice(head=-1),
            "there is no head -1; they count from 1 to 3",
            "没有第-1头；请从1到3中选",
        ),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_named(attended, choice, english, chinese):
    with pytest.raises(ConfigError) as refused:
        matrix_of(attended(), choice)
    assert str(refused.value) == english
    assert refused.value.in_language("zh") == chinese


def test_a_network_without_self_attention_says_what_it_has(attended):
    seen = replace(attended(), encoder=None, decoder=None)
    with pytest.raises(ConfigError) as refused:
        matrix_of(seen, Choice("encoder"))
    assert str(refused.value) == "this network has no encoder attention; it has cross"
