"""Bahdanau's translator: a GRU reads, a GRU writes, and additive attention joins them.

c_t = sum_i a(s_{t-1}, h_i) h_i         the decoder's last state asks, the encoder's states answer
s_t = GRU([y_{t-1}; c_t], s_{t-1})
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention.additive import AdditiveAttention
from regard.attention.checks import check_layout, check_pairs
from regard.attention.layout import Layout, Packed, Padded, as_rows, positions_of
from regard.attention.masks import padding_mask
from regard.model.layers import Embedding
from regard.model.protocol import Explained, Memory


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """The decoder's state, and the encoder's states as values and as projected keys.

    The decoder has a row for each hypothesis, the encoder for each sentence.
    """

    hidden: Float[Tensor, "L N D"]
    key: Float[Tensor, "B S A"]
    value: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B 1 S"] | None

    def reorder(
        self, rows: Int[Tensor, "N"], sentences: Int[Tensor, "B"] | None = None
    ) -> "RecurrentState":
        """Row i becomes what row `rows[i]` was, and of the sentences those given stay."""
        hidden = self.hidden.index_select(1, rows)
        if sentences is None:
            return RecurrentState(hidden, self.key, self.value, self.mask)
        return RecurrentState(
            hidden,
            self.key.index_select(0, sentences),
            self.value.index_select(0, sentences),
            None if self.mask is None else self.mask.index_select(0, sentences),
        )


class Recurrent(nn.Module):
    """GRU encoder in both directions, GRU decoder with additive attention."""

    def __init__(
        self,
        d_model: int,
        n_encoder_layers: int,
        n_decoder_layers: int,
        source: Embedding,
        target: Embedding,
        output: nn.Linear,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.output = output
        # torch's GRU drops between its layers, and warns where there is no between
        self.encoder = nn.GRU(
            d_model,
            d_model // 2,
            n_encoder_layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout if n_encoder_layers > 1 else 0.0,
        )
        self.decoder = nn.GRU(
            2 * d_model,
            d_model,
            n_decoder_layers,
            batch_first=True,
            dropout=dropout if n_decoder_layers > 1 else 0.0,
        )
        self.attention = AdditiveAttention(d_model, d_model, d_model)
        self.first = nn.Linear(d_model, n_decoder_layers * d_model)
        self.readout = nn.Linear(3 * d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Float[Tensor, "*B T V"]:
        """Teacher forcing: logits of the word after each of `tgt_ids`."""
        return self.output(self.decode(tgt_ids, self.encode(src_ids, src), tgt))

    def encode(self, src_ids: Int[Tensor, "*B S"], src: Layout | None = None) -> Memory:
        """The source, read once from both ends; packed rows are unpacked at the door."""
        self.source.check(src_ids, "source")
        check_layout(src_ids, src, "source")
        ids, layout = as_rows(src_ids, src)
        x = self.source(ids, positions_of(layout, ids.shape[-1], ids.device))
        return Memory(self._read(x, layout), layout)

    def decode(
        self, tgt_ids: Int[Tensor, "*B T"], memory: Memory, tgt: Layout | None = None
    ) -> Float[Tensor, "*B T D"]:
        """What `output` turns into logits, for those who do not want all of them at once."""
        hidden, _ = self._write(tgt_ids, memory, tgt)
        return tgt.pack(hidden, tgt_ids.shape[-1]) if isinstance(tgt, Packed) else hidden

    def start(self, memory: Memory, *, max_len: int | None = None) -> RecurrentState:
        """Nothing written yet; the state has one size whatever `max_len` is."""
        value, layout = memory.output, memory.layout
        mask = None if layout is None else padding_mask(layout.lens, value.shape[-2])
        # The backward direction has read the whole sentence when it comes to the first word; an
        # empty sentence has none, and what lies in its place is nobody's.
        read = value[:, 0] if layout is None else value[:, 0] * (layout.lens > 0)[:, None]
        first_BLD = torch.tanh(self.first(read)).unflatten(-1, (self.decoder.num_layers, -1))
        return RecurrentState(
            first_BLD.transpose(0, 1).contiguous(), self.attention.remember(value), value, mask
        )

    def step(
        self, token: Int[Tensor, "N"], state: RecurrentState
    ) -> tuple[Float[Tensor, "N V"], RecurrentState]:
        """Logits of the word after `token`, which is now written."""
        if not token.is_cuda:  # there a search writes its own words, and looking would make it wait
            self.target.check(token, "target")
        words = self.target(token[:, None], positions_of(None, 1, token.device))
        hidden, _, state = self._advance(words, state)
        return self.output(hidden[:, 0]), state

    def explain(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Explained:
        """`forward` with its weights, of one layer and one head; packed rows come back padded."""
        hidden, weights_BTS = self._write(tgt_ids, self.encode(src_ids, src), tgt)
        return Explained(self.output(hidden), None, None, weights_BTS[None, :, None])

    def _read(self, x: Float[Tensor, "B S D"], layout: Padded | None) -> Float[Tensor, "B S D"]:
        if layout is None:
            return self.dropout(self.encoder(x)[0])
        # The backward direction must start at each sentence's own end; an empty one has nothing
        # to attend to, so what is read in its place does not matter.
        lens = layout.lens.clamp(min=1).cpu()
        packed = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=x.shape[1]
        )
        return self.dropout(states)

    def _write(
        self, tgt_ids: Tensor, memory: Memory, tgt: Layout | None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T S"]]:
        """Place by place, since each state asks the source before the next can be made."""
        self.target.check(tgt_ids, "target")
        check_layout(tgt_ids, tgt, "target")
        ids, layout = as_rows(tgt_ids, tgt)
        check_pairs(len(memory.output), len(ids))
        words = self.target(ids, positions_of(layout, ids.shape[-1], ids.device))
        state, hidden, weights = self.start(memory), [], []
        for word in words.split(1, dim=1):
            hidden_t, weights_t, state = self._advance(word, state)
            hidden.append(hidden_t)
            weights.append(weights_t)
        return torch.cat(hidden, dim=1), torch.cat(weights, dim=1)

    def _advance(
        self, word: Float[Tensor, "N 1 D"], state: RecurrentState
    ) -> tuple[Float[Tensor, "N 1 D"], Float[Tensor, "N 1 S"], RecurrentState]:
        # The hypotheses of a sentence ask its memory together, as if they were its places.
        query = state.hidden[-1].unflatten(0, (len(state.key), -1))
        context = self.attention.recall(query, state.key, state.value, state.mask)
        assert context.weights is not None
        answer = context.output.flatten(0, 1)[:, None]
        weights = context.weights.flatten(0, 1)[:, None]
        written, hidden = self.decoder(torch.cat([word, answer], dim=-1), state.hidden)
        read = torch.cat([written, answer, word], dim=-1)
        after = RecurrentState(hidden, state.key, state.value, state.mask)
        return self.dropout(torch.tanh(self.readout(read))), weights, after
