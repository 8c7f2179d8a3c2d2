"""The dimension letters, once for the whole project.

Public functions carry them in their types, `Float[Tensor, "... Q E"]`; inside a body, a tensor
whose shape differs from the arguments' carries them as a suffix, `hidden_QKA`.
"""

DIMENSIONS = {
    "A": "additive hidden width",
    "B": "batch: sentences",
    "S": "source length",
    "T": "target length",
    "Q": "queries",
    "K": "keys",
    "D": "model width",
    "H": "heads",
    "E": "head width",
    "U": "value width",
    "F": "feed-forward width",
    "V": "vocabulary",
    "W": "beam width",
    "N": "rows of a beam search, B x W",
    "C": "candidates of a sentence in a beam search",
    "P": "tokens of a packed row, many sentences end to end",
    "O": "offsets of a packed row, one more than its sentences",
    "L": "layers",
}
