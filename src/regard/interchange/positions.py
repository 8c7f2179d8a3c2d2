"""The fixed positions of our networks, for programs that want them as a table."""

import numpy as np

from regard.config import ModelConfig
from regard.interchange.taken import Floats


def position_table(model: ModelConfig, rows: int | None = None) -> Floats:
    """p(i, 2j) = sin(i w_j), p(i, 2j+1) = cos(i w_j), w_j = 10000^(-2j/d)."""
    d, rows = model.d_model, rows or model.max_len
    angles = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    table = np.zeros((rows, d), dtype=np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table
