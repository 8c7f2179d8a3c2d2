"""What each program of `additive.py` does on the chip.

`x` and `y` hold e^(2q) and e^(2k), a row for each hidden coordinate, so that a loop over
coordinates reads neighbours; `query` and `key` have a row for each token. A group is one head of
one sentence or packed row. Tiles are so small that a warp has one to itself: nobody waits.
"""

import triton
import triton.language as tl

from regard.attention.kernels.chance import is_kept

NOTHING = tl.constexpr(-1.0e30)  # the largest score before there is one; an infinity makes NaN
LOG2_E = tl.constexpr(1.4426950408889634)
FAR = tl.constexpr(1073741824.0)  # 2^30: tanh is 1 to every digit, and four of them multiply


@triton.jit
def forward(
    x, y, v, value, first_key, end_key, mask, seed, output, log_sum, kept_scores,
    strides, n_queries, n_keys, n_heads, longest, dropout,
    HIDDEN: tl.constexpr, ROOM: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr, MASKED: tl.constexpr, DROPS: tl.constexpr,
    FAST: tl.constexpr, KEEPS: tl.constexpr,
):  # fmt: skip
    """A tile of queries of one group: softmax as it goes over the keys, and the average."""
    n_tiles = tl.cdiv(n_queries, ROWS)
    group, start = tl.program_id(0) // n_tiles, (tl.program_id(0) % n_tiles) * ROWS
    rows = start + tl.arange(0, ROWS)
    first = tl.load(first_key + rows, mask=rows < n_queries, other=0)
    end = tl.load(end_key + rows, mask=rows < n_queries, other=0)
    last = tl.minimum(start + ROWS, n_queries) - 1
    value += _group(group, n_heads, strides[0], strides[1])
    mask += _group(group, n_heads, strides[3], strides[4])

    middle = _middle(v, group, n_heads, ROOM)
    largest = tl.full((ROWS,), NOTHING, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    average = tl.zeros((ROWS, PADDED), tl.float32)
    for at in range(tl.load(first_key + start), tl.load(end_key + last), STEP):
        cols = at + tl.arange(0, STEP)
        scores = _scores(x, y, v, group, n_heads, rows, cols, n_queries, n_keys, HIDDEN, ROOM, FAST)
        sees = (cols[None, :] >= first[:, None]) & (cols[None, :] < end[:, None])
        if MASKED:
            sees = sees & _mask(mask, strides, rows[:, None], cols[None, :], n_queries, n_keys)
        _keep(
            kept_scores, scores + middle, sees, group, rows, cols, first, n_queries, longest, KEEPS
        )
        scores = tl.where(sees, scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        if DROPS:
            kept = is_kept(tl.load(seed), group, rows[:, None], cols[None, :], dropout)
            p = tl.where(kept, p, 0.0)
        u = _rows(value, strides[2], cols, n_keys, WIDTH, PADDED)
        average = average * shrink[:, None]
        average = tl.dot(p.to(u.dtype), u, average, input_precision="ieee")
        largest = larger

    norm = tl.where(total > 0.0, total, 1.0)  # a query that sees nothing gets zeros
    output += tl.cast(group, tl.int64) * n_queries * WIDTH
    result = average / (norm * (1.0 - dropout))[:, None]
    _store(output, result, rows, n_queries, WIDTH, PADDED)
    log = tl.where(total > 0.0, largest + tl.log2(norm), 0.0)
    tl.store(log_sum + tl.cast(group, tl.int64) * n_queries + rows, log, mask=rows < n_queries)


@triton.jit
def backward(
    x, y, kept, query, key, v, value, grad, log_sum, delta,
    first_key, first_query, end_query, mask, seed, shared, d_query, d_key, d_v, d_value,
    strides, row_strides, n_queries, n_keys, n_heads, longest, dropout,
    N_HIDDEN: tl.constexpr, HIDDEN: tl.constexpr, ROOM: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, MASKED: tl.constexpr,
    DROPS: tl.constexpr, FAST: tl.constexpr, KEEPS: tl.constexpr,
):  # fmt: skip
    """A tile of keys of one group, keys down and queries across; dQ and dv are added up."""
    n_tiles = tl.cdiv(n_keys, ROWS)
    group, start = tl.program_id(0) // n_tiles, (tl.program_id(0) % n_tiles) * ROWS
    rows = start + tl.arange(0, ROWS)
    hidden = tl.arange(0, ROOM)
    first = tl.load(first_query + rows, mask=rows < n_keys, other=0)
    end = tl.load(end_query + rows, mask=rows < n_keys, other=0)
    last = tl.minimum(start + ROWS, n_keys) - 1
    value += _group(group, n_heads, strides[0], strides[1])
    mask += _group(group, n_heads, strides[3], strides[4])
    grad += tl.cast(group, tl.int64) * n_queries * WIDTH
    log_sum += tl.cast(group, tl.int64) * n_queries
    delta += tl.cast(group, tl.int64) * n_queries
    query += _group(group, n_heads, row_strides[0], row_strides[1]) + hidden
    d_query += tl.cast(group, tl.int64) * n_queries * ROOM + hidden
    key += _group(group, n_heads, row_strides[3], row_strides[4])
    d_key += tl.cast(group, tl.int64) * n_keys * N_HIDDEN
    shared += tl.cast(tl.program_id(0), tl.int64) * ROWS * STEP
    own = tl.load(v + (group % n_heads) * ROOM + hidden)
    y_tile = _exponential(_rows(key, row_strides[5], rows, n_keys, N_HIDDEN, ROOM))
    u = _rows(value, strides[2], rows, n_keys, WIDTH, PADDED)

    middle = _middle(v, group, n_heads, ROOM)
    d_value_tile = tl.zeros((ROWS, PADDED), tl.float32)
    d_key_tile = tl.zeros((ROWS, ROOM), tl.float32)
    d_own = tl.zeros((ROOM,), tl.float32)
    until = tl.load(end_query + last)
    for at in range(tl.load(first_query + start), until, STEP):
        cols = at + tl.arange(0, STEP)
        sees = (cols[None, :] >= first[:, None]) & (cols[None, :] < end[:, None])
        if MASKED:
            sees = sees & _mask(mask, strides, cols[None, :], rows[:, None], n_queries, n_keys)
        if KEEPS:
            scores = _kept(kept, sees, group, rows, cols, first_key, n_queries, longest, middle)
        else:
            scores = _scores(
                y, x, v, group, n_heads, rows, cols, n_keys, n_queries, HIDDEN, ROOM, FAST
            )
        do = _rows(grad, WIDTH, cols, n_queries, WIDTH, PADDED)
        used, ds = _weights_back(
            scores, sees, u, do, log_sum, delta, seed, group, rows, cols, n_queries, dropout, DROPS
        )
        d_value_tile = tl.dot(used.to(do.dtype), do, d_value_tile, input_precision="ieee")
        d_key_tile, d_own = _gradients_of_hidden(
            ds, y_tile, query, row_strides[2], hidden < N_HIDDEN, d_query, own, shared, at, until,
            d_key_tile, d_own, ROOM, ROWS, STEP, FAST,
        )  # fmt: skip

    tl.atomic_add(d_v + tl.cast(group, tl.int64) * ROOM + hidden, -2.0 * d_own, sem="relaxed")
    _store(d_key, d_key_tile * (4.0 * own)[None, :], rows, n_keys, N_HIDDEN, ROOM)
    d_value += tl.cast(group, tl.int64) * n_keys * WIDTH
    _store(d_value, d_value_tile, rows, n_keys, WIDTH, PADDED)


@triton.jit
def _weights_back(
    scores, sees, u, do, log_sum, delta, seed, group, rows, cols, n_queries, dropout,
    DROPS: tl.constexpr,
):  # fmt: skip
    """The weights as they were used, and the gradient of the scores."""
    log = tl.load(log_sum + cols, mask=cols < n_queries, other=0.0)
    dots = tl.load(delta + cols, mask=cols < n_queries, other=0.0)
    p = tl.exp2(tl.where(sees, scores - log[None, :], float("-inf")))
    dp = tl.dot(u, tl.trans(do), input_precision="ieee")
    used = p
    if DROPS:
        kept = is_kept(tl.load(seed), group, cols[None, :], rows[:, None], dropout)
        used = tl.where(kept, p / (1.0 - dropout), 0.0)
        dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
    return used, p * (dp - dots[None, :])


@triton.jit
def _gradients_of_hidden(
    ds, y_tile, queries, stride, there, d_query, own, shared, at, until, d_key_tile, d_own,
    ROOM: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Query by query, keys down and coordinates across, so that sums stay where they are.

    With u = 1 / (1 + x y), tanh is 1 - 2u and its slope 4 (u - u^2):
    dq_a = v_a sum_keys ds slope,  dk_a = v_a sum_queries ds slope,  dv_a = -2 sum ds u
    (the ones of tanh fall out: the ds of a query sum to zero).
    """
    rows = tl.arange(0, ROWS)
    place = shared + tl.arange(0, STEP)[None, :] * ROWS + rows[:, None]
    tl.debug_barrier()  # the columns before have been read
    tl.store(place, ds)
    tl.debug_barrier()
    for query in range(at, tl.minimum(at + STEP, until)):
        q = tl.load(queries + tl.cast(query, tl.int64) * stride, mask=there, other=0.0)
        x = _exponential(q)
        column = tl.load(shared + (query - at) * ROWS + rows)
        u = _reciprocal(y_tile * x[None, :] + 1.0, FAST)
        part = column[:, None] * u
        slope = part - part * u
        d_key_tile += slope
        d_own += tl.sum(part, 0)
        of_query = 4.0 * own * tl.sum(slope, 0)
        tl.atomic_add(d_query + tl.cast(query, tl.int64) * ROOM, of_query, sem="relaxed")
    return d_key_tile, d_own


@triton.jit
def _keep(
    kept, scores, sees, group, queries, keys, first_keys, n_queries, longest, KEEPS: tl.constexpr
):  # fmt: skip
    """Queries down; a query's scores from the first key that it sees on."""
    if KEEPS:
        lines = (tl.cast(group, tl.int64) * n_queries + queries) * longest
        places = keys[None, :] - first_keys[:, None]
        inside = sees & (places < longest)
        tl.store(kept + lines[:, None] + places, scores.to(kept.dtype.element_ty), mask=inside)


@triton.jit
def _kept(kept, sees, group, keys, queries, first_key, n_queries, longest, middle):
    """The same scores again, keys down, where they were."""
    first_keys = tl.load(first_key + queries, mask=queries < n_queries, other=0)
    lines = (tl.cast(group, tl.int64) * n_queries + queries) * longest
    places = keys[:, None] - first_keys[None, :]
    inside = sees & (places < longest)
    scores = tl.load(kept + lines[None, :] + places, mask=inside, other=0.0)
    return scores.to(tl.float32) - middle


@triton.jit
def _middle(v, group, n_heads, ROOM: tl.constexpr):
    """What scores have to be moved by to lie around zero, where few digits say most."""
    return tl.sum(tl.load(v + (group % n_heads) * ROOM + tl.arange(0, ROOM)), 0) * LOG2_E


@triton.jit
def _scores(
    down, across, v, group, n_heads, rows, cols, n_rows, n_cols,
    HIDDEN: tl.constexpr, ROOM: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Scores to base 2, up to one number for each head: -2 sum_a v_a / (1 + x_a y_a).

    Four fractions are added before they are divided, as a reciprocal costs eight products.
    """
    down += tl.cast(group, tl.int64) * n_rows * ROOM + rows
    across += tl.cast(group, tl.int64) * n_cols * ROOM + cols
    v += (group % n_heads) * ROOM
    scores = tl.zeros((rows.shape[0], cols.shape[0]), tl.float32)
    for a in range(0, HIDDEN, 4):
        n0, d0 = _pair(down, across, v, a, rows, cols, n_rows, n_cols)
        n1, d1 = _pair(down, across, v, a + 2, rows, cols, n_rows, n_cols)
        scores += (n0 * d1 + n1 * d0) * _reciprocal(d0 * d1, FAST)
    return scores * (-2.0 * LOG2_E)


@triton.jit
def _pair(down, across, v, a, rows, cols, n_rows, n_cols):
    """v_a / (1 + x_a y_a) of two coordinates as one fraction."""
    d0 = _denominator(down, across, a, rows, cols, n_rows, n_cols)
    d1 = _denominator(down, across, a + 1, rows, cols, n_rows, n_cols)
    d0, d1 = tl.minimum(d0, FAR), tl.minimum(d1, FAR)
    return tl.load(v + a) * d1 + tl.load(v + a + 1) * d0, d0 * d1


@triton.jit
def _denominator(down, across, a, rows, cols, n_rows, n_cols):
    x = tl.load(down + tl.cast(a, tl.int64) * n_rows, mask=rows < n_rows, other=0.0)
    y = tl.load(across + tl.cast(a, tl.int64) * n_cols, mask=cols < n_cols, other=0.0)
    return x.to(tl.float32)[:, None] * y.to(tl.float32)[None, :] + 1.0


@triton.jit
def _exponential(x):
    """e^(2x), of numbers no farther than such a number can be."""
    x = tl.minimum(tl.maximum(x.to(tl.float32), -43.0), 43.0)
    return tl.exp2(x * (2.0 * LOG2_E))


@triton.jit
def _reciprocal(d, FAST: tl.constexpr):
    if FAST:  # one instruction; division would guard against numbers that do not come here
        result = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [d], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        result = 1.0 / d
    return result


@triton.jit
def _group(group, n_heads, batch_stride, head_stride):
    batch, head = tl.cast(group // n_heads, tl.int64), tl.cast(group % n_heads, tl.int64)
    return batch * batch_stride + head * head_stride


@triton.jit
def _mask(mask, strides, queries, keys, n_queries, n_keys):
    place = mask + tl.cast(queries, tl.int64) * strides[5] + keys * strides[6]
    return tl.load(place, mask=(queries < n_queries) & (keys < n_keys), other=0) != 0


@triton.jit
def _rows(x, stride, rows, n_rows, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """These rows, zeros beyond the last and beyond the width."""
    columns = tl.arange(0, PADDED)
    there = (rows < n_rows)[:, None] & (columns < WIDTH)[None, :]
    place = x + tl.cast(rows, tl.int64)[:, None] * stride + columns[None, :]
    return tl.load(place, mask=there, other=0.0)


@triton.jit
def _store(x, tile, rows, n_rows, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    columns = tl.arange(0, PADDED)
    there = (rows < n_rows)[:, None] & (columns < WIDTH)[None, :]
    place = x + tl.cast(rows, tl.int64)[:, None] * WIDTH + columns[None, :]
    tl.store(place, tile.to(x.dtype.element_ty), mask=there)
