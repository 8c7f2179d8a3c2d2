"""`regard convert`: a model from one format, or precision, to another."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from regard.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from regard.interchange.carried import Carried

Format = Literal["regard", "marian", "ctranslate2", "onnx"]
Dtype = Literal["float32", "float16", "int8"]
FilePath = click.Path(path_type=Path)


@click.command()
@click.argument("src", type=FilePath)
@click.argument("dst", type=FilePath)
@click.option("--to", type=click.Choice(["regard", "marian", "ctranslate2", "onnx"]),
              default="regard", show_default=True,
              help="The format to write; that of SRC is recognised.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["float32", "float16", "int8"]),
              help="The precision of the weights; without it that of SRC for regard, else "
                   "float32.")  # fmt: skip
@click.option("--punctuation", type=click.Choice(["never", "always"]), default="never",
              help="Of a Marian: whether its punctuation is normalised as Moses does. "
                   "transformers never does it.")  # fmt: skip
@click.option("--trust-pickle", is_flag=True,
              help="Read a pytorch_model.bin, in a process of its own; say so only if you know "
                   "who made it.")  # fmt: skip
def command(
    src: Path,
    dst: Path,
    to: Format,
    dtype: Dtype | None,
    punctuation: Literal["never", "always"],
    trust_pickle: bool,
) -> None:
    """Turn a model into another format, or into fewer bytes.

    SRC is a model directory of regard, one of Hugging Face with a Marian such as OPUS-MT's, or one
    of fairseq with a checkpoint and dictionaries. DST is written whole or not at all, and must not
    be there.
    """
    from regard.interchange.sources import read_model, recognised

    if dst.exists():
        raise ModelError("{path} is there already; name another place", path=dst)
    kind = recognised(src)
    if punctuation == "always" and kind != "marian":
        raise ConfigError(
            "the option --punctuation is for a Marian, but {path} is of {kind}", path=src, kind=kind
        )
    if to == "regard" and kind == "regard" and dtype in (None, _stored(src)):
        _copy(src, dst)
    else:
        model = read_model(src, trusts_pickle=trust_pickle, punctuation=punctuation == "always")
        _write(model, dst, to, dtype or _own_dtype(src, to))
    click.echo(dst)


def _write(model: "Carried", dst: Path, to: Format, dtype: Dtype) -> None:
    from regard.interchange.carried import write_regard
    from regard.interchange.ctranslate2 import write_ctranslate2
    from regard.interchange.marian import write_marian
    from regard.interchange.onnx import write_onnx

    match to:
        case "regard":
            write_regard(model, dst, dtype)
        case "marian":
            write_marian(model, dst, dtype)
        case "ctranslate2":
            write_ctranslate2(model, dst, dtype)
        case "onnx":
            write_onnx(model, dst, dtype)


def _copy(src: Path, dst: Path) -> None:
    from regard.bundle import open_bundle
    from regard.interchange.carried import copy_bundle

    copy_bundle(open_bundle(src), dst)


def _own_dtype(src: Path, to: Format) -> Dtype:
    """What SRC has, where that is what is wanted; other programs compute as a file is stored."""
    stored = _stored(src)
    return stored if to == "regard" and stored is not None else "float32"


def _stored(src: Path) -> Dtype | None:
    from regard.tensors import stored_dtype

    file = src / "model.safetensors"
    return stored_dtype(file) if file.is_file() else None
