"""What each program of `waves.py` does on the chip: waves, weights, and the ways back of both.

Programs of waves have a tile of rows of one head, first those of queries, then those of keys;
programs of weights have one query.
"""

import triton
import triton.language as tl

from regard.attention.kernels.chance import is_kept

LOG2_E = tl.constexpr(1.4426950408889634)
PI = tl.constexpr(3.141592653589793)


PLACE = ["group", "first_row", "is_first", "is_last"]  # one program for all parts


@triton.jit(do_not_specialize=PLACE)
def make_waves(
    query, key, factor, of_queries, of_keys, query_strides, key_strides, group, first_row,
    n_heads, n_queries, n_keys, n_waves, half_period,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Of queries b v sin(wq), b v cos(wq), of keys cos(wk), sin(wk), for each frequency w."""
    tile, n_tiles = tl.program_id(0), tl.cdiv(n_queries, ROWS)
    if tile < n_tiles:
        _waves_of(
            query, factor, of_queries, query_strides, group, first_row, n_heads, tile, n_queries,
            n_waves, half_period, WIDTH, ROOM, ROWS, True,
        )  # fmt: skip
    else:
        _waves_of(
            key, factor, of_keys, key_strides, group, 0, n_heads, tile - n_tiles, n_keys,
            n_waves, half_period, WIDTH, ROOM, ROWS, False,
        )  # fmt: skip


@triton.jit
def _waves_of(
    x, factor, waves, strides, group, first_row, n_heads, tile, n_rows, n_waves, half_period,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, ROWS: tl.constexpr, IS_QUERY: tl.constexpr,
):  # fmt: skip
    own = tl.program_id(1)
    rows = tile * ROWS + tl.arange(0, ROWS)
    hidden = tl.arange(0, ROOM)
    there = (rows < n_rows)[:, None] & (hidden < WIDTH)[None, :]
    places = _places(strides, group + own, n_heads, first_row + rows, hidden)
    sine, cosine, twice_sine, twice_cosine = _first_wave(x + places, there, half_period)
    head = (group + own) % n_heads
    v = tl.load(factor + head * WIDTH + hidden, mask=hidden < WIDTH, other=0.0)
    waves += _lines(own, rows, n_rows)[:, None] * n_waves * 2 * WIDTH + hidden[None, :]
    for n in range(n_waves):
        if IS_QUERY:
            size = _amplitude(n, half_period) * v[None, :]
            first, second = size * sine, size * cosine
        else:
            first, second = cosine, sine
        tl.store(waves + n * 2 * WIDTH, first.to(waves.dtype.element_ty), mask=there)
        tl.store(waves + (n * 2 + 1) * WIDTH, second.to(waves.dtype.element_ty), mask=there)
        sine, cosine = _next_wave(sine, cosine, twice_sine, twice_cosine)


@triton.jit(do_not_specialize=PLACE)
def gradients_of_waves(
    query, key, factor, d_of_queries, d_of_keys, scale, d_query, d_key, d_factor,
    query_strides, key_strides, d_query_strides, d_key_strides, group, first_row,
    n_heads, n_queries, n_keys, n_waves, half_period,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Back from the waves to what they were made of.

    dq = sum_w b v w (cos(wq) first - sin(wq) second),  dv = sum_w b (sin first + cos second)
    dk = sum_w     w (cos(wk) second - sin(wk) first)
    """
    tile, n_tiles = tl.program_id(0), tl.cdiv(n_queries, ROWS)
    if tile < n_tiles:
        _gradients_of(
            query, factor, d_of_queries, scale, d_query, d_factor, query_strides, d_query_strides,
            group, first_row, n_heads, tile, n_queries, n_waves, half_period,
            WIDTH, ROOM, ROWS, True,
        )  # fmt: skip
    else:
        _gradients_of(
            key, factor, d_of_keys, scale, d_key, d_factor, key_strides, d_key_strides,
            group, 0, n_heads, tile - n_tiles, n_keys, n_waves, half_period,
            WIDTH, ROOM, ROWS, False,
        )  # fmt: skip


@triton.jit
def _gradients_of(
    x, factor, d_waves, scale, d_x, d_factor, strides, out_strides,
    group, first_row, n_heads, tile, n_rows, n_waves, half_period,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, ROWS: tl.constexpr, IS_QUERY: tl.constexpr,
):  # fmt: skip
    own = tl.program_id(1)
    rows = tile * ROWS + tl.arange(0, ROWS)
    hidden = tl.arange(0, ROOM)
    there = (rows < n_rows)[:, None] & (hidden < WIDTH)[None, :]
    places = _places(strides, group + own, n_heads, first_row + rows, hidden)
    sine, cosine, twice_sine, twice_cosine = _first_wave(x + places, there, half_period)
    d_waves += _lines(own, rows, n_rows)[:, None] * n_waves * 2 * WIDTH + hidden[None, :]
    slope = tl.zeros((ROWS, ROOM), tl.float32)
    height = tl.zeros((ROWS, ROOM), tl.float32)
    for n in range(n_waves):
        frequency = (2 * n + 1) * PI / half_period
        first = tl.load(d_waves + n * 2 * WIDTH, mask=there, other=0.0).to(tl.float32)
        second = tl.load(d_waves + (n * 2 + 1) * WIDTH, mask=there, other=0.0).to(tl.float32)
        if IS_QUERY:
            size = _amplitude(n, half_period)
            slope += size * frequency * (cosine * first - sine * second)
            height += size * (sine * first + cosine * second)
        else:
            slope += frequency * (cosine * second - sine * first)
        sine, cosine = _next_wave(sine, cosine, twice_sine, twice_cosine)
    unit = 1.0 / tl.load(scale)
    if IS_QUERY:
        head = (group + own) % n_heads
        v = tl.load(factor + head * WIDTH + hidden, mask=hidden < WIDTH, other=0.0)
        slope = slope * v[None, :]
        of_rows = unit * tl.sum(height, 0)
        tl.atomic_add(d_factor + head * WIDTH + hidden, of_rows, mask=hidden < WIDTH, sem="relaxed")
    d_x += _places(out_strides, group + own, n_heads, first_row + rows, hidden)
    tl.store(d_x, (unit * slope).to(d_x.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=PLACE)
def weights(
    scores, first_key, end_key, mask, seed, weights, log_sum, strides, group, first_row,
    n_heads, n_queries, n_keys, dropout,
    COLUMNS: tl.constexpr, MASKED: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Softmax of one query's scores over the keys that it sees; zeros if it sees none.

    The weights may lie where the scores were: all of a row has been read when one is written.
    """
    row, own = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, COLUMNS)
    place = (tl.cast(own, tl.int64) * tl.num_programs(0) + row) * n_keys + columns
    query = first_row + row
    sees = (columns >= tl.load(first_key + query)) & (columns < tl.load(end_key + query))
    sees = sees & (columns < n_keys)
    if MASKED:
        line = _head_of(strides, group + own, n_heads) + tl.cast(query, tl.int64) * strides[2]
        sees = sees & (tl.load(mask + line + columns * strides[3], mask=sees, other=0) != 0)
    s = tl.load(scores + place, mask=sees, other=float("-inf")).to(tl.float32) * LOG2_E
    largest = tl.max(s, 0)
    largest = tl.where(largest > float("-inf"), largest, 0.0)
    p = tl.exp2(s - largest)
    total = tl.sum(p, 0)
    norm = tl.where(total > 0.0, total, 1.0)
    tl.store(log_sum + (group + own) * n_queries + query, largest + tl.log2(norm))
    p = p / (norm * (1.0 - dropout))
    if DROPS:
        p = tl.where(is_kept(tl.load(seed), group + own, query, columns, dropout), p, 0.0)
    tl.store(weights + place, p.to(weights.dtype.element_ty), mask=columns < n_keys)


@triton.jit(do_not_specialize=PLACE)
def weights_back(
    scores, grad, value, log_sum, delta, d_value, so_far, first_key, end_key, mask, seed, scale,
    grad_strides, value_strides, d_value_strides, strides,
    group, first_row, is_first, is_last, n_heads, n_queries, n_rows, n_keys, dropout,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    MASKED: tl.constexpr, DROPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Some keys of one head: ds where the scores were, query after query, and the values' gradient.

    dp = do v^T,  ds = p (dp - sum p dp) = p (dp - do . o), scaled,  dv = p^T do
    """
    own = tl.program_id(1)
    keys = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    hidden, is_key = tl.arange(0, ROOM), keys < n_keys
    in_value = is_key[:, None] & (hidden < WIDTH)[None, :]
    v = tl.load(
        value + _places(value_strides, group + own, n_heads, keys, hidden),
        mask=in_value, other=0.0,
    )  # fmt: skip
    d_v = tl.zeros((KEYS, ROOM), tl.float32)
    unit = tl.load(scale)
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS)
        query, is_row = first_row + rows, rows < n_rows
        begin = tl.load(first_key + query, mask=is_row, other=0)
        end = tl.load(end_key + query, mask=is_row, other=0)
        sees = (keys[None, :] >= begin[:, None]) & (keys[None, :] < end[:, None]) & is_key[None, :]
        if MASKED:
            allowed = mask + _places(strides, group + own, n_heads, query, keys)
            sees = sees & (tl.load(allowed, mask=sees, other=0) != 0)
        place = scores + _lines(own, rows, n_rows)[:, None] * n_keys + keys[None, :]
        s = tl.load(place, mask=sees, other=float("-inf")).to(tl.float32) * LOG2_E
        line = (group + own) * n_queries + query
        p = tl.exp2(s - tl.load(log_sum + line, mask=is_row, other=0.0)[:, None])
        do = tl.load(
            grad + _places(grad_strides, group + own, n_heads, query, hidden),
            mask=is_row[:, None] & (hidden < WIDTH)[None, :], other=0.0,
        )  # fmt: skip
        dp = tl.dot(do, tl.trans(v), input_precision=PRECISION)
        used = p
        if DROPS:
            kept = is_kept(tl.load(seed), group + own, query[:, None], keys[None, :], dropout)
            used = tl.where(kept, p / (1.0 - dropout), 0.0)
            dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
        ds = p * (dp - tl.load(delta + line, mask=is_row, other=0.0)[:, None]) * unit
        there = is_row[:, None] & is_key[None, :]
        tl.store(place, ds.to(scores.dtype.element_ty), mask=there)
        d_v += tl.dot(tl.trans(used.to(do.dtype)), do, input_precision=PRECISION)
    so_far += _lines(own, keys, n_keys)[:, None] * WIDTH + hidden[None, :]
    if is_first == 0:
        d_v += tl.load(so_far, mask=in_value, other=0.0)
    if is_last == 0:
        tl.store(so_far, d_v, mask=in_value)
    else:
        places = _places(d_value_strides, group + own, n_heads, keys, hidden)
        tl.store(d_value + places, d_v.to(d_value.dtype.element_ty), mask=in_value)


@triton.jit
def _lines(own, rows, n_rows):
    """Which of the lines of a part's heads these rows of one are."""
    return tl.cast(own, tl.int64) * n_rows + rows


@triton.jit
def _head_of(strides, group, n_heads):
    """Where a head begins that is the group-th of all sentences."""
    return tl.cast(group // n_heads, tl.int64) * strides[0] + (group % n_heads) * strides[1]


@triton.jit
def _places(strides, group, n_heads, rows, columns):
    """Where rows and columns of such a head are."""
    lines = _head_of(strides, group, n_heads) + tl.cast(rows, tl.int64) * strides[2]
    return lines[:, None] + columns[None, :] * strides[3]


@triton.jit
def _first_wave(x, there, half_period):
    """Sine and cosine of the lowest frequency, and of the step from each frequency to the next."""
    angle = tl.load(x, mask=there, other=0.0).to(tl.float32) * (PI / half_period)
    sine, cosine = tl.sin(angle), tl.cos(angle)
    return sine, cosine, 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine


@triton.jit
def _next_wave(sine, cosine, step_sine, step_cosine):
    """The angle one step further: sin(a + b) and cos(a + b)."""
    return sine * step_cosine + cosine * step_sine, cosine * step_cosine - sine * step_sine


@triton.jit
def _amplitude(n, half_period):
    """2 pi / (P sinh(pi w / 2)) of the frequency w = (2n + 1) pi / P."""
    x = (2 * n + 1) * (PI * PI / 2.0) / half_period
    return 4.0 * PI / (half_period * (tl.exp(x) - tl.exp(-x)))
