"""Any model that regard knows, recognised by its files."""

from pathlib import Path
from typing import Literal

from regard.bundle import open_bundle
from regard.errors import ModelError
from regard.interchange.carried import Carried, from_bundle
from regard.interchange.fairseq import read_fairseq
from regard.interchange.marian import read_marian
from regard.interchange.probe import check_probe

Source = Literal["regard", "marian", "fairseq"]


def recognised(path: Path) -> Source:
    """What wrote a model: regard, Hugging Face's Marian, or fairseq."""
    if not path.exists():
        raise ModelError("there is no model {path}", path=path)
    if (path / "MANIFEST.json").is_file():
        return "regard"
    if (path / "config.json").is_file():
        return "marian"
    if path.suffix == ".pt" or (path.is_dir() and any(path.glob("*.pt"))):
        return "fairseq"
    raise ModelError(
        "{path} is no model that regard knows: one of its own has a MANIFEST.json, one of Hugging "
        "Face a config.json, one of fairseq a file that ends in .pt",
        path=path,
    )


def read_model(path: Path, *, trusts_pickle: bool = False, punctuation: bool = False) -> Carried:
    """The model at a place, whatever wrote it, with tokenizers that do what they did."""
    match recognised(path):
        case "regard":
            carried = from_bundle(open_bundle(path))
        case "marian":
            carried = read_marian(path, trusts_pickle=trusts_pickle, punctuation=punctuation)
        case "fairseq":
            carried = read_fairseq(path)
    check_probe((carried.src_tokenizer, carried.tgt_tokenizer), carried.facts)
    return carried
