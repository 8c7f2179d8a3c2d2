"""The fast paths: the same numbers as `functional.py`, without the matrix of weights.

A score that is a dot product of something goes through torch's fused attention:

    scaled dot   q . k / sqrt(E)
    dot          q . k
    Gaussian     -|wq - wk|^2 / 2  =  (wq) . (wk) - |wk|^2 / 2  - |wq|^2 / 2

The last term of the Gaussian is one number for each query, so softmax does not see it, and the one
before it becomes two more coordinates of the key. Only the additive score has a tanh in the way.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.varlen import varlen_attn

from regard.attention import kernels
from regard.attention.cache import Cache, SlotKVCache
from regard.attention.checks import (
    check_mask,
    check_packed_rows,
    check_same_width,
    check_values,
)
from regard.attention.functional import additive_scores, attend, dot_scale
from regard.attention.kernels.spans import spans_of
from regard.attention.masks import Blocks, Causal, Mask, dense

if kernels.ARE_HERE:
    from regard.attention.kernels.additive import tiled_additive_attention
    from regard.attention.kernels.short import short_attention
    from regard.attention.kernels.slots import slot_attention, source_attention
    from regard.attention.kernels.waves import is_for_waves, wave_attention

PaddedAttention = Callable[[Tensor, Tensor, Tensor, Mask | None], Tensor]

SHORT = 256  # tokens a sentence, on average, up to which our kernel beats torch's
FEW, MOST_KEYS = 16, 4096  # of a sentence in a search: its hypotheses, and its words


def scaled_dot_attention(
    query: Float[Tensor, "... Q E"],
    key: Float[Tensor, "... K E"],
    value: Float[Tensor, "... K U"],
    mask: Mask | None = None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "... Q U"]:
    """`attend` with `scaled_dot_scores`."""
    return _dot_product(query, key, value, mask, dot_scale(query.shape[-1]), dropout)


def scaled_dot_step(
    query: Float[Tensor, "N H Q E"],
    key: Float[Tensor, "N H Q E"],
    value: Float[Tensor, "N H Q E"],
    cache: Cache,
    *,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "N H Q E"], Cache]:
    """`scaled_dot_attention` of new tokens to themselves and a cache, and the longer cache."""
    scale = dot_scale(query.shape[-1])
    if isinstance(cache, SlotKVCache) and not dropout and kernels.can_take(query, cache.keys):
        lineage = cache.lineage
        own = cache.keys, cache.values, lineage.owners, lineage.lengths
        return slot_attention(query, key, value, *own, scale), cache
    cache = cache.append(key, value)
    mask = cache.visible(query.shape[-2])
    mask = None if mask is None else torch.atleast_2d(mask).unsqueeze(-3)
    return _dot_product(query, cache.key, cache.value, mask, scale, dropout), cache


def dot_attention(
    query: Float[Tensor, "... Q E"],
    key: Float[Tensor, "... K E"],
    value: Float[Tensor, "... K U"],
    mask: Mask | None = None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "... Q U"]:
    """`attend` with `dot_scores`."""
    return _dot_product(query, key, value, mask, 1.0, dropout)


def gaussian_attention(
    query: Float[Tensor, "... Q E"],
    key: Float[Tensor, "... K E"],
    value: Float[Tensor, "... K U"],
    w: Float[Tensor, "*#H"] | float,
    mask: Mask | None = None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "... Q U"]:
    """`attend` with `gaussian_scores`, as a dot product of longer vectors."""
    query, key = gaussian_as_dot(query, key, w)
    d_value = value.shape[-1]
    # fused kernels want one width for all three
    width = max(key.shape[-1], d_value)
    query, key, value = (F.pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    return _dot_product(query, key, value, mask, 1.0, dropout)[..., :d_value]


def additive_attention(
    query: Float[Tensor, "... Q A"],
    key: Float[Tensor, "... K A"],
    value: Float[Tensor, "... K U"],
    v: Float[Tensor, "*#H A"],
    mask: Mask | None = None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "... Q U"]:
    """`attend` with `additive_scores`; packed rows are scored sentence by sentence."""
    check_same_width(query, key)
    check_values(key, value)
    if kernels.can_take(query, key, value) and _is_tiled(query, key, value, v):
        return _tiled_additive(query, key, value, v, mask, dropout)
    v = v.to(query.dtype)  # a master weight may be wider than what flows past it

    def padded(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> Tensor:
        mask = dense(mask, query.shape[-2], key.shape[-2], query.device)
        scores = lambda q, k: additive_scores(q, k, v)  # noqa: E731
        return attend(query, key, value, scores, mask, dropout=dropout).output

    if isinstance(mask, Blocks):
        return _sentence_by_sentence(padded, query, key, value, mask)
    return padded(query, key, value, mask)


def _is_tiled(query: Tensor, key: Tensor, value: Tensor, v: Tensor) -> bool:
    """Whether there are many queries, and nothing to repeat but v."""
    lead = query.shape[:-2]
    heads_fit = v.ndim == 1 or (v.ndim == 2 and len(v) in (1, lead[-1]))
    alike = lead == key.shape[:-2] == value.shape[:-2]
    return query.shape[-2] > 1 and len(lead) in (1, 2) and alike and heads_fit


def _tiled_additive(
    query: Tensor, key: Tensor, value: Tensor, v: Tensor, mask: Mask | None, dropout: float
) -> Tensor:
    """Additive attention by kernels that never hold a number for each pair and coordinate."""
    if isinstance(mask, Tensor):
        check_mask(mask, n_queries=query.shape[-2], n_keys=key.shape[-2])
        seen, allowed = None, mask.expand(*[1] * (4 - mask.ndim), *mask.shape)
    else:
        seen, allowed = mask, None
    n_keys = key.shape[-2]
    mean_len, longest = float(n_keys), n_keys
    if isinstance(mask, Blocks):
        mean_len, longest = n_keys / len(mask.key.lens), min(mask.key.max_len, n_keys)
    spans = spans_of(seen, query.shape[-2], n_keys, query.device)
    # a batch of one for rows that have none; v may serve all heads
    query_rows, key_rows, value_rows = (x if x.ndim == 4 else x[None] for x in (query, key, value))
    v = torch.atleast_2d(v)
    if not isinstance(mask, Blocks) and is_for_waves(query, key, value):
        output = wave_attention(query_rows, key_rows, value_rows, v, spans, allowed, dropout)
    else:
        output = tiled_additive_attention(
            query_rows, key_rows, value_rows, v, spans, allowed, dropout, mean_len, longest
        )
    return output if query.ndim == 4 else output[0]


def gaussian_as_dot(
    query: Float[Tensor, "... Q E"],
    key: Float[Tensor, "... K E"],
    w: Float[Tensor, "*#H"] | float,
) -> tuple[Float[Tensor, "... Q _"], Float[Tensor, "... K _"]]:
    """Longer vectors whose dot product is `gaussian_scores` up to one number for each query.

    The half square of a key is split over two coordinates, a coarse part and the rest: rounded to
    one bfloat16 it is wrong by up to 1 part in 256 of a number much larger than the scores. And
    both are seen from the middle of the keys: distances do not change, but far from the origin
    they would drown in the squares. (Not in half precision, which has no digits to spare for it.)
    """
    check_same_width(query, key)
    dtype = query.dtype
    if dtype.itemsize > 2:
        middle = key.detach().mean(dim=-2, keepdim=True)
        query, key = query - middle, key - middle
    w_QE = w[..., None, None] if isinstance(w, Tensor) else w
    query, key = (w_QE * query).to(dtype), (w_QE * key).to(dtype)
    exact = torch.promote_types(dtype, torch.float32)
    half_square = -0.5 * key.to(exact).square().sum(-1, keepdim=True)
    coarse = half_square.to(dtype)
    rest = (half_square - coarse.to(exact)).to(dtype)
    width = query.shape[-1] + 2
    to_eight = (0, -width % 8)  # fused kernels want a multiple of 8
    query = F.pad(F.pad(query, (0, 2), value=1.0), to_eight)
    return query, F.pad(torch.cat([key, coarse, rest], dim=-1), to_eight)


def _dot_product(
    query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, scale: float, dropout: float
) -> Tensor:
    """softmax(scale * query key^T) value, by the kernel that suits the mask and the machine."""
    check_same_width(query, key)
    check_values(key, value)

    def padded(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> Tensor:
        mask = dense(mask, query.shape[-2], key.shape[-2], query.device)
        if mask is not None and not dropout and _are_few(query, key, value, mask):
            return source_attention(query, key, value, mask, scale)
        if mask is not None and query.is_cuda:
            return _with_seeing_queries(query, key, value, mask, scale, dropout)
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale
        )

    match mask:
        case Blocks() if kernels.can_take(query, key, value) and (dropout or _is_short(mask, key)):
            check_packed_rows(query, mask.query)
            check_packed_rows(key, mask.key)
            spans = spans_of(mask, query.shape[-2], key.shape[-2], query.device)
            is_own = mask.query is mask.key
            return short_attention(query, key, value, spans, scale, dropout, is_own=is_own)
        case Blocks() if query.is_cuda and query.dtype.itemsize == 2 and not dropout:
            return _variable_length(query, key, value, mask, scale)
        case Blocks():
            return _sentence_by_sentence(padded, query, key, value, mask)
        case Causal() if query.shape[-2] == key.shape[-2]:
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=dropout, is_causal=True, scale=scale
            )
        case Tensor():
            check_mask(mask, n_queries=query.shape[-2], n_keys=key.shape[-2])
    return padded(query, key, value, mask)


def _are_few(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> bool:
    """A step of a search: some queries of each sentence, to whose keys all its heads attend."""
    rows = query, key, value
    if not kernels.can_take(*rows) or torch.compiler.is_compiling():
        return False
    is_kept = torch.is_grad_enabled() and any(x.requires_grad for x in rows)
    is_step = query.ndim == 4 and query.shape[-2] <= FEW and 0 < key.shape[-2] <= MOST_KEYS
    is_step = is_step and mask.shape == (len(query), 1, 1, key.shape[-2])
    alike = key.shape == value.shape and query.shape[:2] == key.shape[:2]
    alike = alike and query.shape[-1] == key.shape[-1] and all(x.stride(-1) == 1 for x in rows)
    return is_step and alike and not is_kept


def _is_short(mask: Blocks, key: Tensor) -> bool:
    """By what is known without looking at the lengths: tokens, and room for sentences."""
    return key.shape[-2] <= SHORT * (len(mask.key.offsets) - 1)


def _with_seeing_queries(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float, dropout: float
) -> Tensor:
    """CUDA answers NaN to a query with no keys: let it see them all, then take nothing of it."""
    sees = mask.any(dim=-1, keepdim=True)
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask | ~sees, dropout_p=dropout, scale=scale
    )
    return output.masked_fill(~sees, 0.0)


def _variable_length(
    query: Float[Tensor, "H P E"],
    key: Float[Tensor, "H P E"],
    value: Float[Tensor, "H P U"],
    mask: Blocks,
    scale: float,
) -> Tensor:
    """Packed rows as they are, by the GPU's kernel for sequences of different lengths."""
    check_packed_rows(query, mask.query)
    check_packed_rows(key, mask.key)
    output_PHE: Tensor = varlen_attn(  # type: ignore[assignment]
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        mask.query.offsets,
        mask.key.offsets,
        mask.query.max_len,
        mask.key.max_len,
        scale=scale,
        window_size=(-1, 0) if mask.causal else (-1, -1),
    )
    return output_PHE.transpose(0, 1)


def _sentence_by_sentence(
    attention: PaddedAttention, query: Tensor, key: Tensor, value: Tensor, mask: Blocks
) -> Tensor:
    """Unpack, attend in padded rows, pack: on a CPU 3 times faster than jagged tensors."""
    check_packed_rows(query, mask.query)
    check_packed_rows(key, mask.key)
    query_rows = mask.query.unpack(query)
    key_rows, value_rows = mask.key.unpack(key), mask.key.unpack(value)
    mask_rows = mask.padded(query_rows.shape[-2], key_rows.shape[-2])[:, None]
    output = attention(query_rows, key_rows, value_rows, mask_rows)
    return mask.query.pack(output, n_tokens=query.shape[-2])
