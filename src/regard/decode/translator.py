"""From text to text with a model directory: what translate, evaluate and serve call."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from regard.attention.layout import Padded
from regard.bundle import Bundle, open_bundle
from regard.decode.beam import beam_search
from regard.decode.greedy import greedy
from regard.model.build import build_model
from regard.model.recurrent import Recurrent
from regard.model.transformer import Transformer
from regard.model.weights import load_weights
from regard.text.tokenizer import Tokenizer

Network = Transformer | Recurrent
ROWS = 64  # sentences translated at once


class Translator:
    """A model ready to translate."""

    def __init__(self, bundle: Bundle, device: str = "cpu") -> None:
        self.bundle = bundle
        self.device = torch.device(device)
        src, tgt = bundle.src_tokenizer, bundle.tgt_tokenizer
        self.network = build_model(bundle.model, len(src.vocab), len(tgt.vocab))
        load_weights(self.network, read_weights(bundle))
        self.network.to(self.device).eval()

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        """The translation of each text; an empty one stays empty."""
        src, tgt = self.bundle.src_tokenizer, self.bundle.tgt_tokenizer
        longest = self.bundle.model.max_len
        return translate_with(
            self.network, src, tgt, texts, self.device, beam=beam, longest=longest
        )


def open_translator(path: Path, device: str = "cpu") -> Translator:
    """The translator in a model directory."""
    return Translator(open_bundle(path), device)


def read_weights(bundle: Bundle) -> dict[str, Tensor]:
    """The weights of a model directory by name."""
    weights: dict[str, Tensor] = load_file(bundle.weights)
    return weights


def translate_with(
    network: Network,
    src: Tokenizer,
    tgt: Tokenizer,
    texts: Sequence[str],
    device: torch.device,
    to: Sequence[str] = (),
    *,
    beam: int = 1,
    longest: int | None = None,
) -> list[str]:
    """Translations by the best of `beam` hypotheses, in the order of the texts.

    None has more than `longest` tokens, which is as far as the network's positions go.

    A model of several directions is told the language that each text is translated to.
    """
    ids = [[*row, src.vocab.eos] for row in src.encode_all(list(texts))]
    if src.vocab.languages:
        ids = [[src.vocab.language(lang), *row] for lang, row in zip(to, ids, strict=True)]
    order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
    translated = [""] * len(texts)
    wanted = [i for i in order if texts[i].strip()]
    for start in range(0, len(wanted), ROWS):
        chosen = wanted[start : start + ROWS]
        rows = _decode(network, [ids[i] for i in chosen], src, tgt, device, beam, longest)
        for i, row in zip(chosen, rows, strict=True):
            translated[i] = tgt.decode(row)
    return translated


@torch.no_grad()
def _decode(
    network: Network,
    rows: list[list[int]],
    src: Tokenizer,
    tgt: Tokenizer,
    device: torch.device,
    beam: int,
    longest: int | None,
) -> list[list[int]]:
    lens = torch.tensor([len(row) for row in rows], device=device)
    width = max(map(len, rows))
    ids = torch.tensor([row + [src.vocab.pad] * (width - len(row)) for row in rows], device=device)
    state = network.start(network.encode(ids, Padded(lens)))
    bos, eos, max_len = tgt.vocab.bos, tgt.vocab.eos, 2 * width + 20
    max_len = max_len if longest is None else min(max_len, longest)
    if beam == 1:
        return greedy(
            network.step, state, len(rows), bos=bos, eos=eos, max_len=max_len, device=device
        )
    found = beam_search(
        network.step,  # type: ignore[arg-type]
        state,
        len(rows),
        width=beam,
        max_len=max_len,
        bos=bos,
        eos=eos,
        device=device,
    )
    return [list(hypotheses[0].ids) for hypotheses in found]
