"""Attention of a made-up translation, with random weights and a causal decoder."""

from dataclasses import dataclass

import numpy as np
import pytest

SRC = ("▁", "机器", "学习", "是", "分", "支", "。", "</s>")
TGT = ("▁Ma", "ch", "ine", "▁learning", "▁is", "▁a", "▁bran", "ch", ".", "</s>")


@dataclass(frozen=True, eq=False)
class Seen:
    src_pieces: tuple
    tgt_pieces: tuple
    text: str
    cross: np.ndarray
    encoder: np.ndarray | None
    decoder: np.ndarray | None


def softmax(scores):
    exp = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (exp / exp.sum(axis=-1, keepdims=True)).astype(np.float32)


def make(src=SRC, tgt=TGT, layers=2, heads=3, text="Machine learning is a branch.", sharp=2.0):
    rng = np.random.default_rng(0)
    n_src, n_tgt = len(src), len(tgt)
    ahead = np.triu(np.full((n_tgt, n_tgt), -np.inf), 1)
    return Seen(
        tuple(src),
        tuple(tgt),
        text,
        softmax(sharp * rng.normal(size=(layers, heads, n_tgt, n_src))),
        softmax(sharp * rng.normal(size=(layers + 1, heads, n_src, n_src))),
        softmax(sharp * rng.normal(size=(layers, heads, n_tgt, n_tgt)) + ahead),
    )


@pytest.fixture
def attended():
    """A function that makes attention of any size; without arguments, of a small sentence."""
    return make
