"""The tokenizers of Marian in Hugging Face's form, read and written.

source.spm target.spm    SentencePiece models that cut the text
vocab.json               {piece: id}, of both sides, or of the source beside target_vocab.json
tokenizer_config.json    languages, and whether the vocabularies are separate
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, ModelError
from regard.interchange.carried import Carried
from regard.storage import write_json
from regard.text.mapped import LANGUAGE, MappedTokenizer, mapped_tokenizer
from regard.text.normalize import Normalizer
from regard.text.saved import MODEL, MOST_BYTES
from regard.text.subword import SubwordTokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.vocab import EOS, PAD, UNK, Vocabulary

OURS = "regard_directions"  # transformers keeps what it does not know
NOTHING = Normalizer(form="none")  # what SentencePiece's tables do not change stays


def read_table(path: Path, *, is_needed: bool = True) -> dict[str, Any]:
    """A JSON file that holds a table; one that is not there and not needed is an empty one."""
    if not is_needed and not path.exists():
        return {}
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError("there is no file {path}", path=path) from None
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise ModelError("{path} is no valid JSON", path=path)
    return table


def read_tokenizers(
    directory: Path, ids: Mapping[str, int], sizes: tuple[int, int], *, punctuation: bool
) -> tuple[MappedTokenizer, MappedTokenizer]:
    """The tokenizers of both sides.

    Args:
        ids: pad, bos and eos of the target, as the model's settings have them.
        sizes: how many words the network has on each side.
        punctuation: whether it is normalised, as Moses does.
    """
    settings = read_table(directory / "tokenizer_config.json", is_needed=False)
    src_pieces = _pieces(directory / "vocab.json", sizes[0])
    tgt_pieces = src_pieces
    if settings.get("separate_vocabs"):
        tgt_pieces = _pieces(directory / "target_vocab.json", sizes[1])
    src_ids = {**ids, "eos": _id(src_pieces, EOS, directory / "vocab.json")}
    src_ids["pad"] = src_pieces.index(PAD) if PAD in src_pieces else ids["pad"]
    src_lang, tgt_lang = (
        str(settings.get(f"{side}_lang") or "other") if punctuation else ""
        for side in ("source", "target")
    )
    return (
        _tokenizer(directory / "source.spm", src_pieces, src_ids, src_lang),
        _tokenizer(directory / "target.spm", tgt_pieces, ids, tgt_lang),
    )


def directions(directory: Path, languages: Mapping[str, int]) -> list[list[str]]:
    """From which language to which: first as plain text is taken, then by each code it knows.

    A code is put before the text only if it is asked for, as transformers does; so the first has
    no name where its name is a code.
    """
    settings = read_table(directory / "tokenizer_config.json", is_needed=False)
    if known := settings.get(OURS):
        return [[str(src), str(tgt)] for src, tgt in known]
    src, tgt = (str(settings.get(f"{side}_lang") or "") for side in ("source", "target"))
    return [[src, "" if tgt in languages else tgt], *([src, code] for code in languages)]


def write_tokenizers(carried: Carried, directory: Path) -> None:
    """The files of both sides, for a tokenizer that Marian has a place for."""
    sides = carried.src_tokenizer, carried.tgt_tokenizer
    models = [spm_of(one) for one in sides]
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (directory / name).write_bytes(model)
    src, tgt = (_their_names(one.vocab) for one in sides)
    write_json(directory / "vocab.json", src)
    if src != tgt:
        write_json(directory / "target_vocab.json", tgt)
    ways = carried.facts.get("directions") or [["", ""]]
    [src_lang, tgt_lang], *_ = ways
    write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": src_lang,
            "target_lang": tgt_lang,
            "separate_vocabs": src != tgt,
            "model_max_length": carried.model.max_len,
            "unk_token": UNK,
            "eos_token": EOS,
            "pad_token": PAD,
            OURS: ways,
        },
    )


def spm_of(tokenizer: Tokenizer) -> bytes:
    """The SentencePiece model of a tokenizer; one that is something else has no place there."""
    if not isinstance(tokenizer, SubwordTokenizer | MappedTokenizer):
        raise ModelError(
            "{setting} has no place in Marian, which has {theirs}",
            setting=f"a tokenizer of kind {type(tokenizer).__name__}",
            theirs="SentencePiece",
        )
    for name, has in (("form", ("nfc", "none")), ("width", ("keep",)), ("han", ("keep",))):
        value = getattr(tokenizer.normalizer, name)
        if value not in has:
            raise ModelError(
                "{setting} has no place in Marian, which has {theirs}",
                setting=f'normalizer.{name} = "{value}"',
                theirs=f'"{has[0]}"',
            )
    return tokenizer.model


def _their_names(vocab: Vocabulary) -> dict[str, int]:
    """Pieces and their ids; the tokens that ask for a language under Marian's names."""
    asking = {id: f">>{code}<<" for code, id in vocab.languages.items()}
    return {asking.get(id, piece): id for id, piece in enumerate(vocab.pieces)}


def _pieces(path: Path, size: int) -> tuple[str, ...]:
    """The pieces in the order of their ids; what the network has beyond them is never said."""
    ids = read_table(path)
    by_id = {id: piece for piece, id in ids.items() if type(id) is int}
    n = len(ids)
    if sorted(by_id) != list(range(n)) or n > size:
        raise ModelError(
            "{path} has {n} pieces with ids that are not 0 to {last}, or more than the {size} "
            "words of the network",
            path=path,
            n=n,
            last=n - 1,
            size=size,
        )
    return (*(by_id[id] for id in range(n)), *(f"<unused {id}>" for id in range(n, size)))


def _id(pieces: tuple[str, ...], piece: str, path: Path) -> int:
    if piece not in pieces:
        raise ModelError("{path} has no piece {piece}", path=path, piece=piece)
    return pieces.index(piece)


def _tokenizer(
    path: Path, pieces: tuple[str, ...], ids: Mapping[str, int], language: str
) -> MappedTokenizer:
    codes = {
        found[1]: id for id, piece in enumerate(pieces) if (found := LANGUAGE.fullmatch(piece))
    }
    unk = _id(pieces, UNK, path.with_name("vocab.json"))
    try:
        vocab = Vocabulary(pieces, **ids, unk=unk, languages=codes)
    except ConfigError as error:
        raise ModelError(
            "{path}: {faults}", path=path.with_name("vocab.json"), faults=(error,)
        ) from None
    try:
        with path.open("rb") as file:
            model = file.read(MOST_BYTES[MODEL] + 1)
    except FileNotFoundError:
        raise ModelError("there is no file {path}", path=path) from None
    return mapped_tokenizer(path, model, vocab, NOTHING, language)
