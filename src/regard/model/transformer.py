"""The Transformer of "Attention Is All You Need": embed, encode, decode, predict."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.cache import Cache, FixedKVCache, KVCache
from regard.attention.checks import check_layout, check_pairs
from regard.attention.layout import Layout, Packed, Padded, as_rows, positions_of
from regard.attention.masks import decoder_mask, encoder_mask, memory_mask, padding_mask
from regard.attention.multihead import KeyValue
from regard.model.decoder import Decoded, Decoder
from regard.model.encoder import Encoded, Encoder
from regard.model.layers import Embedding
from regard.model.protocol import Explained, Memory


@dataclass(frozen=True, slots=True)
class TransformerState:
    """Each layer's cache of the target and keys and values of the source, and the source's mask.

    The target has a row for each hypothesis; the source a row for each sentence, which all its
    hypotheses ask.
    """

    caches: tuple[Cache, ...]
    memory: tuple[KeyValue, ...]
    memory_mask: Bool[Tensor, "B 1 S"] | None

    def reorder(
        self, rows: Int[Tensor, "N"], sentences: Int[Tensor, "B"] | None = None
    ) -> "TransformerState":
        """Row i becomes what row `rows[i]` was, and of the sentences those given stay."""
        caches = tuple(cache.reorder(rows) for cache in self.caches)
        if sentences is None:
            return TransformerState(caches, self.memory, self.memory_mask)
        mask = self.memory_mask
        return TransformerState(
            caches,
            tuple(
                (key.index_select(0, sentences), value.index_select(0, sentences))
                for key, value in self.memory
            ),
            None if mask is None else mask.index_select(0, sentences),
        )


class Transformer(nn.Module):
    """Encoder and decoder between the embeddings and the output; they may share one matrix."""

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        source: Embedding,
        target: Embedding,
        output: nn.Linear,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.source = source
        self.target = target
        self.output = output

    def forward(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Float[Tensor, "*B T V"]:
        """Teacher forcing: logits of the word after each of `tgt_ids`, all places at once."""
        return self.output(self.decode(tgt_ids, self.encode(src_ids, src), tgt))

    def encode(
        self, src_ids: Int[Tensor, "*B S"], src: Layout | None = None, *, are_words: bool = False
    ) -> Memory:
        """The source, read once; looking whether its ids `are_words` would make a GPU wait."""
        return Memory(self._encode(src_ids, src, are_words=are_words).output, src)

    def decode(
        self, tgt_ids: Int[Tensor, "*B T"], memory: Memory, tgt: Layout | None = None
    ) -> Float[Tensor, "*B T D"]:
        """What `output` turns into logits, for those who do not want all of them at once."""
        return self._decode(tgt_ids, memory, tgt).output

    def start(self, memory: Memory, *, max_len: int | None = None) -> TransformerState:
        """Nothing written yet, a row for each sentence; with `max_len`, in memory of fixed size."""
        output, layout = memory.output, memory.layout
        if isinstance(layout, Packed):
            output, layout = layout.unpack(output), Padded(layout.lens)
        remembered = self.decoder.remember(output)
        caches = tuple(
            KVCache.empty(key) if max_len is None else FixedKVCache.empty(key, max_len)
            for key, _ in remembered
        )
        mask = None if layout is None else padding_mask(layout.lens, output.shape[-2])
        return TransformerState(caches, remembered, mask)

    def step(
        self, token: Int[Tensor, "N"], state: TransformerState
    ) -> tuple[Float[Tensor, "N V"], TransformerState]:
        """Logits of the word after `token`, which is now written."""
        if not token.is_cuda:  # there a search writes its own words, and looking would make it wait
            self.target.check(token, "target")
        positions = state.caches[0].positions(1)
        x = self.target(token[:, None], positions)
        x, caches = self.decoder.step(x, state.caches, state.memory, state.memory_mask)
        return self.output(x[:, 0]), TransformerState(caches, state.memory, state.memory_mask)

    def explain(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Explained:
        """`forward` with every weight of every attention; packed rows come back padded."""
        (src_ids, src), (tgt_ids, tgt) = as_rows(src_ids, src), as_rows(tgt_ids, tgt)
        encoded = self._encode(src_ids, src, wants_weights=True)
        decoded = self._decode(tgt_ids, Memory(encoded.output, src), tgt, wants_weights=True)
        return Explained(
            self.output(decoded.output),
            torch.stack(encoded.weights),
            torch.stack(decoded.weights),
            torch.stack(decoded.cross_weights),
        )

    def _encode(
        self,
        src_ids: Tensor,
        src: Layout | None,
        *,
        wants_weights: bool = False,
        are_words: bool = False,
    ) -> Encoded:
        if not are_words:
            self.source.check(src_ids, "source")
        check_layout(src_ids, src, "source")
        n = src_ids.shape[-1]
        positions = positions_of(src, n, src_ids.device)
        x = self.source(src_ids, positions)
        return self.encoder(x, encoder_mask(src, n), positions, wants_weights=wants_weights)

    def _decode(
        self, tgt_ids: Tensor, memory: Memory, tgt: Layout | None, *, wants_weights: bool = False
    ) -> Decoded:
        self.target.check(tgt_ids, "target")
        check_layout(tgt_ids, tgt, "target")
        check_pairs(_n_sentences(memory.output, memory.layout), _n_sentences(tgt_ids, tgt))
        positions = positions_of(tgt, tgt_ids.shape[-1], tgt_ids.device)
        return self.decoder(
            self.target(tgt_ids, positions),
            memory.output,
            decoder_mask(tgt),
            memory_mask(tgt, memory.layout, memory.output.shape[-2]),
            positions,
            wants_weights=wants_weights,
        )


def _n_sentences(x: Tensor, layout: Layout | None) -> int:
    return len(layout.lens) if isinstance(layout, Packed) else len(x)
