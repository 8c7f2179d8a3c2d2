"""One step of a beam search behind the likeliest words, on a GPU: which hypotheses go on, and how.

A program has all candidates of a sentence before it. It sorts nothing: a candidate's place among
them is how many stand before it, and to that place it is written. Nor does it wait for another,
as the rows of a sentence go on from one another only.
"""

import triton
import triton.language as tl
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.cache import Lineage

MOST_BEAMS = 16  # whose candidates a program can hold
BLOCK = 32  # candidates that all are compared with at once
STEP = 32  # places of the lineage at once


def choose(
    log_p: Float[Tensor, "N _"],
    words: Int[Tensor, "N _"],
    norms: Float[Tensor, "_"],
    eos: int,
    token: Int[Tensor, "N"],
    totals: Float[Tensor, "B W"],
    is_open: Bool[Tensor, "B"],
    counts: tuple[Int[Tensor, "B"], Int[Tensor, "B"], Int[Tensor, "B"]],
    written: tuple[Tensor, ...],
    lineage: Lineage,
) -> None:
    """What `Slots` does with the likeliest words of every row, in the memory of the slots.

    Scores of n + 1 words are divided by `norms[n]`; the counts are words said, most words, and
    hypotheses that came to an end. Slots that are closed stay as they are.
    """
    n_slots, beam = totals.shape
    n = words.shape[1]
    room = triton.next_power_of_2(beam * n)
    _choose[(n_slots,)](
        *(log_p, words, norms, eos, token, totals, is_open, *counts, *written),
        *(lineage.owners, lineage.lengths, written[0].shape[1], lineage.owners.shape[1]),
        BEAM=beam,
        N=n,
        ROOM=room,
        BLOCK=min(room, BLOCK),
        ROWS=triton.next_power_of_2(beam),
        STEP=STEP,
        num_warps=min(max(room // 16, 1), 16),
        num_stages=1,
    )


@triton.jit
def _choose(
    log_p, words, norms, eos, token, totals, is_open, n_said, limits, n_finished,
    said, parents, end_scores, end_parents, owners, lengths, n_steps, n_places,
    BEAM: tl.constexpr, N: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One slot: the best 2 W candidates, of which the first that do not end go on."""
    slot = tl.cast(tl.program_id(0), tl.int64)
    if tl.load(is_open + slot) == 0:
        return
    first = slot * BEAM
    step, limit = tl.load(n_said + slot), tl.load(limits + slot)
    ended, length = tl.load(n_finished + slot), tl.load(lengths + first)
    norm = tl.load(norms + step)
    own = tl.arange(0, ROOM)
    total, word, is_end = _candidates(log_p, words, totals, eos, first, own, BEAM, N)
    rank, rank_of_kind = _ranks(
        log_p, words, totals, eos, first, own, total, is_end, BEAM, N, BLOCK
    )
    is_best = (rank < 2 * BEAM) & (own < BEAM * N)
    n_others = tl.sum((is_best & (is_end == 0)).to(tl.int32), 0)
    place = rank_of_kind + tl.where(is_end, n_others, 0)  # those that end stand behind the others
    stays = is_best & (place < BEAM)

    score = tl.where(is_end, total / norm, float("-inf"))
    ended += tl.sum(((rank < BEAM) & (score > float("-inf"))).to(tl.int64), 0)
    total = tl.where(is_end | (ended >= BEAM), float("-inf"), total)
    is_alive = tl.max((stays & (total > float("-inf"))).to(tl.int32), 0) > 0
    has_more = is_alive & (step + 1 < limit)
    length = tl.where(has_more, tl.minimum(length + 1, n_places - 1), 0)

    tl.debug_barrier()  # all has been read
    line = (slot * n_steps + step) * BEAM
    beam = own // N
    tl.store(said + line + place, word, mask=stays)
    tl.store(parents + line + place, beam, mask=stays)
    tl.store(end_scores + line + rank, score, mask=rank < BEAM)
    tl.store(end_parents + line + rank, beam, mask=rank < BEAM)
    tl.store(token + first + place, word, mask=stays)
    tl.store(totals + first + place, total, mask=stays)
    tl.store(n_said + slot, step + 1)
    tl.store(n_finished + slot, ended)
    tl.store(is_open + slot, has_more)
    rows = tl.arange(0, ROWS)
    if BEAM > 1:  # else a row has written all that it has
        is_here = stays[None, :] & (place[None, :] == rows[:, None])
        parent = tl.sum(tl.where(is_here, beam[None, :], 0), 1)
        _follow(owners, first, rows, parent, length, n_places, BEAM, STEP)
    tl.store(lengths + first + rows, length, mask=rows < BEAM)


@triton.jit
def _candidates(
    log_p, words, totals, eos, first, own, BEAM: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """Totals, words and whether they end; beyond the last as if they had no chance."""
    there = own < BEAM * N
    before = tl.load(totals + first + own // N, mask=there, other=float("-inf"))
    new = tl.load(log_p + first * N + own, mask=there, other=float("-inf"))
    word = tl.load(words + first * N + own, mask=there, other=0)
    total = before + new.to(tl.float64)
    total = tl.where(total == total, total, float("-inf"))  # what is no number has no place
    return total, word, word == eos


@triton.jit
def _ranks(
    log_p, words, totals, eos, first, own, total, is_end,
    BEAM: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """How many candidates stand before each, of all and of those that end or do not, as it.

    The better stand before, and of equals the earlier.
    """
    rank = tl.zeros_like(own)
    rank_of_kind = tl.zeros_like(own)
    for at in range(0, BEAM * N, BLOCK):
        others = at + tl.arange(0, BLOCK)
        score, _, ends = _candidates(log_p, words, totals, eos, first, others, BEAM, N)
        is_equal = score[None, :] == total[:, None]
        stands_before = is_equal & (others[None, :] < own[:, None])
        stands_before = stands_before | (score[None, :] > total[:, None])
        rank += tl.sum(stands_before.to(tl.int32), 1)
        is_alike = stands_before & (ends[None, :] == is_end[:, None])
        rank_of_kind += tl.sum(is_alike.to(tl.int32), 1)
    return rank, rank_of_kind


@triton.jit
def _follow(
    owners, first, rows, parent, length, n_places, BEAM: tl.constexpr, STEP: tl.constexpr
):  # fmt: skip
    """`Lineage.follow` in the rows of a sentence, as far as they go."""
    own = owners + (first + rows) * n_places
    others = owners + (first + parent) * n_places
    for at in range(0, length, STEP):
        places = at + tl.arange(0, STEP)
        inside = (rows < BEAM)[:, None] & (places < length)[None, :]
        owner = tl.load(others[:, None] + places[None, :], mask=inside, other=0)
        tl.debug_barrier()  # they have been read before another row's are written there
        tl.store(own[:, None] + places[None, :], owner, mask=inside)
    tl.store(own + length, first + rows, mask=rows < BEAM)  # the next is always a row's own
