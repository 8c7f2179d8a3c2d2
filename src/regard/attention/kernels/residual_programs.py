"""What each program of `residual.py` does on the chip: some rows at a time, each in one piece."""

import triton
import triton.language as tl

from regard.attention.kernels.chance import is_kept_in_row


@triton.jit
def forward(
    x, y, weight, bias, seed, output, mean, scale, n_rows, epsilon, dropout,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, ADDS: tl.constexpr,
    DROPS: tl.constexpr,
):  # fmt: skip
    """A tile of rows: the sum, its mean and variance, and the norm."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, PADDED)
    total, _ = _sum(x, y, seed, rows, columns, n_rows, dropout, WIDTH, PADDED, ADDS, DROPS)
    normed, middle, shrink = _norm(total, weight, bias, columns, epsilon, WIDTH)
    _store(output, normed, rows, columns, n_rows, WIDTH)
    tl.store(mean + rows, middle, mask=rows < n_rows)
    tl.store(scale + rows, shrink, mask=rows < n_rows)


@triton.jit
def forward_with_sum(
    x, y, weight, bias, total, output, n_rows, epsilon,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A tile of rows: the sum, rounded as it is stored, and the norm of what is stored."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, PADDED)
    wide = _tile(x, rows, columns, n_rows, WIDTH) + _tile(y, rows, columns, n_rows, WIDTH)
    rounded = wide.to(total.dtype.element_ty)
    _store(total, rounded, rows, columns, n_rows, WIDTH)
    normed, _, _ = _norm(rounded.to(tl.float32), weight, bias, columns, epsilon, WIDTH)
    _store(output, normed, rows, columns, n_rows, WIDTH)


@triton.jit
def backward(
    grad, x, y, weight, seed, mean, scale, d_x, d_y, d_weight, d_bias, n_rows, dropout,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, ADDS: tl.constexpr,
    DROPS: tl.constexpr,
):  # fmt: skip
    """Every so many tiles of rows; what belongs to the columns is added up on the way."""
    columns = tl.arange(0, PADDED)
    w = tl.load(weight + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    dw = tl.zeros((ROWS, PADDED), tl.float32)
    db = tl.zeros((ROWS, PADDED), tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        total, kept = _sum(x, y, seed, rows, columns, n_rows, dropout, WIDTH, PADDED, ADDS, DROPS)
        g = _tile(grad, rows, columns, n_rows, WIDTH)
        middle = tl.load(mean + rows, mask=rows < n_rows, other=0.0)
        shrink = tl.load(scale + rows, mask=rows < n_rows, other=0.0)
        normed = (total - middle[:, None]) * shrink[:, None]
        dw += g * normed
        db += g
        g = g * w[None, :]
        along = tl.sum(g * normed, 1) / WIDTH
        ds = shrink[:, None] * (g - tl.sum(g, 1)[:, None] / WIDTH - normed * along[:, None])
        _store(d_x, ds, rows, columns, n_rows, WIDTH)
        if DROPS:
            _store(d_y, ds * kept, rows, columns, n_rows, WIDTH)
    place = tl.program_id(0) * WIDTH + columns
    tl.store(d_weight + place, tl.sum(dw, 0), mask=columns < WIDTH)
    tl.store(d_bias + place, tl.sum(db, 0), mask=columns < WIDTH)


@triton.jit
def _sum(
    x, y, seed, rows, columns, n_rows, dropout,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, ADDS: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """x + kept y, and by how much each of y is kept: 0 or 1 / (1 - dropout)."""
    total = _tile(x, rows, columns, n_rows, WIDTH)
    kept = 1.0
    if DROPS:
        stays = is_kept_in_row(tl.load(seed), rows, columns, dropout)
        kept = tl.where(stays, 1.0 / (1.0 - dropout), 0.0)
    if ADDS:
        total += kept * _tile(y, rows, columns, n_rows, WIDTH)
    return total, kept


@triton.jit
def _norm(total, weight, bias, columns, epsilon, WIDTH: tl.constexpr):
    """The rows normed, and of each the mean and what it was multiplied with."""
    middle = tl.sum(total, 1) / WIDTH
    off = tl.where((columns < WIDTH)[None, :], total - middle[:, None], 0.0)
    shrink = 1.0 / tl.sqrt(tl.sum(off * off, 1) / WIDTH + epsilon)
    w, b = _parameters(weight, bias, columns, WIDTH)
    return off * shrink[:, None] * w[None, :] + b[None, :], middle, shrink


@triton.jit
def _tile(x, rows, columns, n_rows, WIDTH: tl.constexpr):
    place = x + tl.cast(rows, tl.int64)[:, None] * WIDTH + columns[None, :]
    there = (rows < n_rows)[:, None] & (columns < WIDTH)[None, :]
    return tl.load(place, mask=there, other=0.0).to(tl.float32)


@triton.jit
def _store(x, tile, rows, columns, n_rows, WIDTH: tl.constexpr):
    place = x + tl.cast(rows, tl.int64)[:, None] * WIDTH + columns[None, :]
    there = (rows < n_rows)[:, None] & (columns < WIDTH)[None, :]
    tl.store(place, tile.to(x.dtype.element_ty), mask=there)


@triton.jit
def _parameters(weight, bias, columns, WIDTH: tl.constexpr):
    w = tl.load(weight + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    return w, b
