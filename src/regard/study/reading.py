"""A trained Transformer opened up: what some experiments look into instead of a random one."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.bundle import Bundle, open_bundle
from regard.decode.engines.torch import load_network
from regard.decode.translator import BUNDLED
from regard.errors import ModelError
from regard.model import Transformer


@dataclass(frozen=True, slots=True)
class Opened:
    """A model directory and the network in it."""

    bundle: Bundle
    network: Transformer

    @property
    def in_words(self) -> str:
        """Which model this is: its directory, and the network in a line."""
        path = self.bundle.path
        name = "bundled" if path == BUNDLED else path.name
        return f"{name}: {self.bundle.model.in_words}"

    def ids(self, text: str, language: str = "en") -> Int[Tensor, "1 S"]:
        """A source as the network is given it: its language token, where there are any, and end."""
        vocab = self.bundle.src_tokenizer.vocab
        asked = [vocab.language(language)] if vocab.languages else []
        return torch.tensor([[*asked, *self.bundle.src_tokenizer.encode(text), vocab.eos]])

    def pieces(self, ids: Int[Tensor, "1 S"]) -> tuple[str, ...]:
        """The pieces of a source."""
        return tuple(self.bundle.src_tokenizer.vocab.piece(int(id)) for id in ids[0])

    def embedded(self, ids: Int[Tensor, "1 S"]) -> Float[Tensor, "1 S D"]:
        """What enters the first layer of the encoder."""
        return self.network.source(ids, torch.arange(ids.shape[1]))


def opened(model: Path | None) -> Opened:
    """The Transformer in a model directory, or in the one that comes with regard."""
    path = model or BUNDLED
    bundle = open_bundle(path)
    network = load_network(bundle, torch.device("cpu"))
    if not isinstance(network, Transformer):
        raise ModelError(
            "{path} has no self-attention to look into; name a Transformer with --model", path=path
        )
    return Opened(bundle, network)
