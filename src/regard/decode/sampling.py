"""Words drawn, not searched for: from the network's distribution, sharpened and cut as asked.

p(word) ∝ exp(log p / temperature), among the `top_k` likeliest words, and of these among the
likeliest that have `top_p` of the probability together

Every sentence has dice of its own, thrown by the seed and its words, so that what is drawn for it
does not depend on its neighbours. A word is where the die falls on the sum of the probabilities.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.greedy import write
from regard.decode.ready import Ready, S
from regard.decode.rules import Numbers
from regard.decode.search import Hypothesis, Search, Sentence


def sample(
    ready: Ready[S], sentences: Sequence[Sentence], search: Search
) -> list[list[Hypothesis]]:
    """For each sentence `nbest` translations drawn, the best first, each by the network's score."""
    dice = [_dice(one, ready.limit(one, search), search) for one in sentences]
    dice_NT = np.zeros((len(dice) * search.nbest, max(throws.shape[1] for throws in dice)))
    for number, throws in enumerate(dice):
        rows = slice(number * search.nbest, (number + 1) * search.nbest)
        dice_NT[rows, : throws.shape[1]] = throws

    def choose(log_p: Tensor, n_said: int, rows: Numbers) -> Tensor:
        throws = torch.from_numpy(dice_NT[rows, n_said]).to(log_p.device)
        return drawn(log_p, throws, search.temperature, search.top_k, search.top_p)

    return write(ready, sentences, search, choose, each=search.nbest)


def drawn(
    log_p: Float[Tensor, "N V"],
    throws: Float[Tensor, "N"],
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
) -> Int[Tensor, "N"]:
    """The word of each row on which a throw between 0 and 1 falls."""
    words = None
    if top_k or top_p < 1.0:
        n_words = min(top_k or log_p.shape[1], log_p.shape[1])
        log_p, words = log_p.topk(n_words)
    p = (log_p.double() / temperature).softmax(-1)
    if top_p < 1.0:
        p[:, 1:] *= (p.cumsum(-1) - p < top_p)[:, 1:]  # what is before a word is not yet enough
    sums = p.cumsum(-1)
    # the first word whose sum exceeds the throw, so none of probability 0
    place = torch.searchsorted(sums, (throws * sums[:, -1])[:, None], right=True)
    place = place.clamp(max=sums.shape[1] - 1)
    return (place if words is None else words.gather(1, place))[:, 0]


def _dice(sentence: Sentence, n_throws: int, search: Search) -> Float[np.ndarray, "_ T"]:
    """Throws between 0 and 1 for each word of each translation of a sentence."""
    generator = np.random.default_rng([search.seed, *sentence.ids])
    return generator.random((search.nbest, n_throws))
