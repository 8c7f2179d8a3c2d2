"""What each program of `short.py` does on the chip.

Heads of one tile are neighbours in the grid, as their rows are in memory. Strides are (head, row)
for query, key, value and, on the way back, for the output's gradient; `d_strides` are of the rows
that gradients go to.
"""

import triton
import triton.language as tl

from regard.attention.kernels.chance import is_kept

NOTHING = tl.constexpr(-1.0e30)  # the largest score before there is one; an infinity makes NaN
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def forward(
    query, key, value, first_key, end_key, seed, output, log_sum, strides, n_queries, n_heads,
    scale, dropout,
    WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, PADDED: tl.constexpr,
    VALUE_PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """A tile of queries of one head: softmax as it goes over the keys, and the average."""
    head = tl.program_id(0) % n_heads
    start = (tl.program_id(0) // n_heads) * ROWS
    rows, first, end, keys_from, keys_to = _seen(first_key, end_key, start, n_queries, ROWS)
    q = _rows(query, strides[0], strides[1], head, start, n_queries, WIDTH, ROWS, PADDED)

    largest = tl.full((ROWS,), NOTHING, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    average = tl.zeros((ROWS, VALUE_PADDED), tl.float32)
    for at in range(keys_from, keys_to, STEP):
        k = _rows(key, strides[2], strides[3], head, at, keys_to, WIDTH, STEP, PADDED)
        v = _rows(value, strides[4], strides[5], head, at, keys_to, VALUE_WIDTH, STEP, VALUE_PADDED)
        cols = at + tl.arange(0, STEP)
        sees = (cols[None, :] >= first[:, None]) & (cols[None, :] < end[:, None])
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        scores = tl.where(sees, scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        if DROPS:
            kept = is_kept(tl.load(seed), head, rows[:, None], cols[None, :], dropout)
            p = tl.where(kept, p, 0.0)
        average = average * shrink[:, None]
        average = tl.dot(p.to(v.dtype), v, average, input_precision="ieee")
        largest = larger

    # a query that sees nothing gets zeros
    norm = tl.where(total > 0.0, total, 1.0)
    result = average / (norm * (1.0 - dropout))[:, None]
    columns = tl.arange(0, VALUE_PADDED)
    place = output + (tl.cast(start, tl.int64) * n_heads + head) * VALUE_WIDTH
    place += (tl.arange(0, ROWS) * (n_heads * VALUE_WIDTH))[:, None] + columns[None, :]
    there = (rows < n_queries)[:, None] & (columns < VALUE_WIDTH)[None, :]
    tl.store(place, result.to(output.dtype.element_ty), mask=there)
    log = tl.where(total > 0.0, largest + tl.log2(norm), 0.0)
    tl.store(log_sum + tl.cast(head, tl.int64) * n_queries + rows, log, mask=rows < n_queries)


@triton.jit
def dot_of_rows(
    grad, output, delta, grad_head, grad_row, n_queries, n_heads,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """delta = rowsum(dO O), heads within rows as they lie in the output."""
    places = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    query, head = places // n_heads, places % n_heads
    columns = tl.arange(0, PADDED)
    there = (query < n_queries)[:, None] & (columns < WIDTH)[None, :]
    grads = (query * grad_row + head * grad_head)[:, None] + columns[None, :]
    d_output = tl.load(grad + grads, mask=there, other=0.0).to(tl.float32)
    averaged = tl.load(output + places[:, None] * WIDTH + columns[None, :], mask=there, other=0.0)
    dots = tl.sum(d_output * averaged.to(tl.float32), 1)
    tl.store(delta + head * n_queries + query, dots, mask=query < n_queries)


@triton.jit
def backward(
    query, key, value, grad, log_sum, delta, first_key, end_key, first_query, end_query, seed,
    d_query, d_key, d_value, strides, d_strides, n_queries, n_keys, n_heads, scale, dropout,
    WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, PADDED: tl.constexpr,
    VALUE_PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """A tile of keys, then the queries of the same number: near in memory, so mostly in cache."""
    head = tl.program_id(0) % n_heads
    start = (tl.program_id(0) // n_heads) * ROWS
    log_sum += tl.cast(head, tl.int64) * n_queries
    delta += tl.cast(head, tl.int64) * n_queries
    if start < n_keys:
        _of_keys(
            query, key, value, grad, log_sum, delta, first_query, end_query, seed, d_key, d_value,
            strides, d_strides, start, head, n_keys, scale, dropout,
            WIDTH, VALUE_WIDTH, PADDED, VALUE_PADDED, ROWS, STEP, DROPS,
        )  # fmt: skip
    if start < n_queries:
        _of_queries(
            query, key, value, grad, log_sum, delta, first_key, end_key, seed, d_query,
            strides, d_strides, start, head, n_queries, scale, dropout,
            WIDTH, VALUE_WIDTH, PADDED, VALUE_PADDED, ROWS, STEP, DROPS,
        )  # fmt: skip


@triton.jit
def _of_keys(
    query, key, value, grad, log_sum, delta, first_query, end_query, seed, d_key, d_value,
    strides, d_strides, start, head, n_keys, scale, dropout,
    WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, PADDED: tl.constexpr,
    VALUE_PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """dK and dV of a tile, transposed throughout: keys down, queries across."""
    rows, first, end, queries_from, queries_to = _seen(first_query, end_query, start, n_keys, ROWS)
    k = _rows(key, strides[2], strides[3], head, start, n_keys, WIDTH, ROWS, PADDED)
    v = _rows(value, strides[4], strides[5], head, start, n_keys, VALUE_WIDTH, ROWS, VALUE_PADDED)
    dk = tl.zeros((ROWS, PADDED), tl.float32)
    dv = tl.zeros((ROWS, VALUE_PADDED), tl.float32)
    for at in range(queries_from, queries_to, STEP):
        q = _rows(query, strides[0], strides[1], head, at, queries_to, WIDTH, STEP, PADDED)
        do = _rows(
            grad, strides[6], strides[7], head, at, queries_to, VALUE_WIDTH, STEP, VALUE_PADDED
        )
        cols = at + tl.arange(0, STEP)
        log = tl.load(log_sum + cols, mask=cols < queries_to, other=0.0)
        dots = tl.load(delta + cols, mask=cols < queries_to, other=0.0)
        sees = (cols[None, :] >= first[:, None]) & (cols[None, :] < end[:, None])
        scores = tl.dot(k, tl.trans(q), input_precision="ieee") * (scale * LOG2_E)
        p = tl.exp2(tl.where(sees, scores - log[None, :], float("-inf")))
        dp = tl.dot(v, tl.trans(do), input_precision="ieee")
        used = p
        if DROPS:
            kept = is_kept(tl.load(seed), head, cols[None, :], rows[:, None], dropout)
            used = tl.where(kept, p / (1.0 - dropout), 0.0)
            dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
        dv = tl.dot(used.to(do.dtype), do, dv, input_precision="ieee")
        ds = p * (dp - dots[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")
    _store(d_key, d_strides[1], dk * scale, start, head, n_keys, WIDTH, ROWS, PADDED)
    _store(d_value, d_strides[2], dv, start, head, n_keys, VALUE_WIDTH, ROWS, VALUE_PADDED)


@triton.jit
def _of_queries(
    query, key, value, grad, log_sum, delta, first_key, end_key, seed, d_query,
    strides, d_strides, start, head, n_queries, scale, dropout,
    WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, PADDED: tl.constexpr,
    VALUE_PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """dQ of a tile."""
    rows, first, end, keys_from, keys_to = _seen(first_key, end_key, start, n_queries, ROWS)
    q = _rows(query, strides[0], strides[1], head, start, n_queries, WIDTH, ROWS, PADDED)
    do = _rows(
        grad, strides[6], strides[7], head, start, n_queries, VALUE_WIDTH, ROWS, VALUE_PADDED
    )
    log = tl.load(log_sum + rows, mask=rows < n_queries, other=0.0)
    dots = tl.load(delta + rows, mask=rows < n_queries, other=0.0)
    dq = tl.zeros((ROWS, PADDED), tl.float32)
    for at in range(keys_from, keys_to, STEP):
        k = _rows(key, strides[2], strides[3], head, at, keys_to, WIDTH, STEP, PADDED)
        v = _rows(value, strides[4], strides[5], head, at, keys_to, VALUE_WIDTH, STEP, VALUE_PADDED)
        cols = at + tl.arange(0, STEP)
        sees = (cols[None, :] >= first[:, None]) & (cols[None, :] < end[:, None])
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        p = tl.exp2(tl.where(sees, scores - log[:, None], float("-inf")))
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        if DROPS:
            kept = is_kept(tl.load(seed), head, rows[:, None], cols[None, :], dropout)
            dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
        ds = p * (dp - dots[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    _store(d_query, d_strides[0], dq * scale, start, head, n_queries, WIDTH, ROWS, PADDED)


@triton.jit
def _seen(first_of, end_of, start, n_rows, ROWS: tl.constexpr):
    """The rows of a tile, what each sees, and from where to where any of them sees something."""
    rows = start + tl.arange(0, ROWS)
    first = tl.load(first_of + rows, mask=rows < n_rows, other=0)
    end = tl.load(end_of + rows, mask=rows < n_rows, other=0)
    last = tl.minimum(start + ROWS, n_rows) - 1
    return rows, first, end, tl.load(first_of + start), tl.load(end_of + last)


@triton.jit
def _rows(
    x, head_stride, row_stride, head, start, n_rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Rows of one head from `start` on, zeros beyond the last and beyond the width."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, PADDED)
    place = x + tl.cast(head, tl.int64) * head_stride + tl.cast(start, tl.int64) * row_stride
    there = (start + rows < n_rows)[:, None]
    if WIDTH < PADDED:
        there = there & (columns < WIDTH)[None, :]
    return tl.load(place + rows[:, None] * row_stride + columns[None, :], mask=there, other=0.0)


@triton.jit
def _store(
    x, row_stride, tile, start, head, n_rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """A tile into its place: heads lie side by side in a row."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, PADDED)
    place = x + tl.cast(start, tl.int64) * row_stride + head * WIDTH
    there = (start + rows < n_rows)[:, None]
    if WIDTH < PADDED:
        there = there & (columns < WIDTH)[None, :]
    place += rows[:, None] * row_stride + columns[None, :]
    tl.store(place, tile.to(x.dtype.element_ty), mask=there)
