"""Marian in Hugging Face's form, as OPUS-MT's models come, to regard and back.

Two conventions differ, and neither changes a number that the network computes. Its positions have
all sines before all cosines, so the coordinates of the model's width are permuted in every weight
that touches them; and its decoder starts from padding, which our vocabulary calls `bos`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import __version__
from regard.config import ModelConfig
from regard.errors import ConfigError, ModelError
from regard.interchange.carried import Carried
from regard.interchange.marian_text import (
    directions,
    read_table,
    read_tokenizers,
    spm_of,
    write_tokenizers,
)
from regard.interchange.names import (
    DOORS,
    NO_WEIGHTS,
    gathered,
    permuted,
    places,
    scattered,
    without_copies,
)
from regard.interchange.pickled import read_trusted
from regard.interchange.probe import check_same, probed
from regard.interchange.taken import Weights
from regard.storage import write_json, written_whole
from regard.tensors import Tensors, as_dtype, check_finite, read_tensors, write_tensors

DEFAULTS: dict[str, Any] = {
    "vocab_size": 58101, "decoder_vocab_size": None, "d_model": 1024,
    "encoder_layers": 12, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096,
    "decoder_layers": 12, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096,
    "activation_function": "gelu", "scale_embedding": False, "max_position_embeddings": 1024,
    "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
    "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100,
}  # fmt: skip
"""What a config.json means by what it leaves out."""

ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish"}
BIAS = DOORS["marian"]["bias"]


def read_marian(path: Path, *, trusts_pickle: bool = False, punctuation: bool = False) -> Carried:
    """The model of a directory; whatever is wrong is said before anything is made of it."""
    config = _config(path / "config.json")
    found = _read_weights(path, trusts_pickle)
    check_finite(found)
    bias = found.pop(BIAS, np.zeros(0, np.float32)).reshape(-1)
    model = _model(path / "config.json", config, has_bias=bool(bias.any()))
    if model.output_bias:
        found[BIAS] = bias
    sizes = _sizes(config)
    ids = {
        "pad": config["pad_token_id"],
        "bos": config["decoder_start_token_id"],
        "eos": config["eos_token_id"],
    }
    tokenizers = read_tokenizers(path, ids, sizes, punctuation=punctuation)
    facts = {
        "regard": __version__,
        "directions": directions(path, tokenizers[0].vocab.languages),
        "weights": "imported from Marian",
        "decode": _decode(path, config, model),
        "punctuation": "always, as Moses" if punctuation else "never",
        "probe": probed(tokenizers),
    }
    weights = _own_weights(model, sizes, found)
    return Carried(model, *tokenizers, weights, facts, _card(path, model, facts))


def write_marian(carried: Carried, path: Path, dtype: str) -> None:
    """The model as a directory that `MarianMTModel.from_pretrained` loads."""
    model, tokenizers = carried.model, (carried.src_tokenizer, carried.tgt_tokenizer)
    _check_place(model)
    if dtype == "int8":
        raise ModelError(
            "{setting} has no place in Marian, which has {theirs}",
            setting='dtype = "int8"',
            theirs="float32 and float16",
        )
    for one in tokenizers:
        spm_of(one)
    sizes = len(tokenizers[0].vocab), len(tokenizers[1].vocab)
    stored = as_dtype(
        _their_weights(model, sizes, carried.weights),
        "float16" if dtype == "float16" else "float32",
    )
    tgt = tokenizers[1].vocab
    ids = {"pad": tgt.pad, "bos": tgt.bos, "eos": tgt.eos}
    with written_whole(path) as building:
        write_tokenizers(carried, building)
        again = read_tokenizers(building, ids, sizes, punctuation=False)
        check_same(again, tokenizers)
        write_json(building / "config.json", _their_config(model, sizes, ids, dtype))
        write_json(building / "generation_config.json", _generation(carried, ids))
        write_tensors(stored, building / "model.safetensors")
        (building / "README.md").write_text(_their_card(carried), encoding="utf-8")


def halves(d_model: int) -> NDArray[np.int64]:
    """Our coordinates in Marian's order: of each pair the sine's, then of each the cosine's."""
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def _own_weights(model: ModelConfig, sizes: tuple[int, int], found: Tensors) -> dict[str, Any]:
    table = places(model, *sizes, "marian")
    weights = Weights(without_copies(model, _without_positions(model, found), "marian"))
    own = gathered(table, weights)
    weights.check()
    return permuted(table, own, np.argsort(halves(model.d_model)))


def _their_weights(model: ModelConfig, sizes: tuple[int, int], own: Tensors) -> dict[str, Any]:
    table = places(model, *sizes, "marian")
    weights = Weights(own)
    in_order = {place.own: weights.take(place.own, *place.shape) for place in table}
    weights.check()
    found = scattered(table, permuted(table, in_order, halves(model.d_model)))
    found[BIAS] = found.get(BIAS, np.zeros(sizes[1], np.float32))[None]
    return found


def _without_positions(model: ModelConfig, found: Tensors) -> dict[str, NDArray[Any]]:
    """Older files hold the sines and cosines; a table of anything else stays, and is unexpected."""
    n, d = model.max_len, model.d_model
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return {
        name: tensor
        for name, tensor in found.items()
        if name not in NO_WEIGHTS["marian"]
        or tensor.shape != table.shape
        or not np.allclose(tensor, table, atol=1e-3)
    }


def _read_weights(path: Path, trusts_pickle: bool) -> dict[str, NDArray[Any]]:
    file, pickle = path / "model.safetensors", path / "pytorch_model.bin"
    if file.exists():
        return read_tensors(file)
    if index := read_table(path / "model.safetensors.index.json", is_needed=False):
        names = sorted(set(index.get("weight_map", {}).values()))
        return {k: v for name in names for k, v in read_tensors(path / Path(name).name).items()}
    if not pickle.exists():
        raise ModelError("there is no file {path}", path=file)
    if not trusts_pickle:
        raise ModelError(
            "{path} is a pickle, which may run what it likes when it is read; if you trust who "
            "made it, say so with --trust-pickle",
            path=pickle,
        )
    return read_trusted(pickle)


def _config(path: Path) -> dict[str, Any]:
    table = read_table(path)
    if table.get("model_type") != "marian":
        raise ModelError(
            '{path} is of model_type "{found}"; of Hugging Face\'s models regard reads "marian"',
            path=path,
            found=table.get("model_type"),
        )
    config = {name: table.get(name, default) for name, default in DEFAULTS.items()}
    if isinstance(config["eos_token_id"], list) and len(config["eos_token_id"]) == 1:
        [config["eos_token_id"]] = config["eos_token_id"]
    wrong = [name for name, value in config.items() if not _is_like(value, DEFAULTS[name])]
    if wrong:
        raise ModelError('{path} has no valid "{name}"', path=path, name='", "'.join(wrong))
    return {**table, **config}


def _is_like(value: Any, default: Any) -> bool:
    if default is None:
        return value is None or type(value) is int
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)


def _model(path: Path, config: Mapping[str, Any], *, has_bias: bool) -> ModelConfig:
    activation = ACTIVATIONS.get(config["activation_function"])
    if activation is None:
        raise ModelError(
            '{path} has activation_function = "{found}"; regard has {known}',
            path=path,
            found=config["activation_function"],
            known=", ".join(ACTIVATIONS),
        )
    share = "all" if config["share_encoder_decoder_embeddings"] else "target"
    if not config["tie_word_embeddings"]:
        share = "none"
    try:
        return ModelConfig(
            d_model=config["d_model"],
            n_layers=(config["encoder_layers"], config["decoder_layers"]),
            n_heads=(config["encoder_attention_heads"], config["decoder_attention_heads"]),
            d_ff=(config["encoder_ffn_dim"], config["decoder_ffn_dim"]),
            activation=activation,  # type: ignore[arg-type]
            max_len=config["max_position_embeddings"],
            share=share,  # type: ignore[arg-type]
            scale_embeddings=config["scale_embedding"],
            output_bias=has_bias,
            dropout=float(config["dropout"]),
            attention_dropout=float(config["attention_dropout"]),
            activation_dropout=float(config["activation_dropout"]),
        )
    except ConfigError as error:
        raise ModelError("{path}: {faults}", path=path, faults=(error,)) from None


def _sizes(config: Mapping[str, Any]) -> tuple[int, int]:
    n_src = config["vocab_size"]
    is_shared = config["share_encoder_decoder_embeddings"]
    return n_src, n_src if is_shared else config["decoder_vocab_size"] or n_src


def _decode(path: Path, config: Mapping[str, Any], model: ModelConfig) -> dict[str, Any]:
    """How the model is asked for, from where it says so; its limit counts the start, ours not."""
    file = path / "generation_config.json"
    own = read_table(file, is_needed=False) or config
    longest = own.get("max_length") or model.max_len + 1
    decode = {
        "beam": own.get("num_beams") or 1,
        "length_penalty": own.get("length_penalty") or 1.0,
        "max_len": min(longest - 1, model.max_len) if type(longest) is int else None,
        "forbidden": own.get("bad_words_ids") or [],
        "no_repeat": own.get("no_repeat_ngram_size") or 0,
        "renormalize": bool(own.get("renormalize_logits")),
    }
    are_words = isinstance(decode["forbidden"], list) and all(
        isinstance(words, list) and words and all(type(id) is int for id in words)
        for words in decode["forbidden"]
    )
    are_numbers = all(type(decode[name]) is int for name in ("beam", "max_len", "no_repeat"))
    if not (are_words and are_numbers and type(decode["length_penalty"]) in (int, float)):
        raise ModelError(
            '{path} has no valid "{name}"',
            path=file if file.exists() else path / "config.json",
            name="num_beams, max_length, length_penalty, bad_words_ids or no_repeat_ngram_size",
        )
    return {name: value for name, value in decode.items() if value}


def _check_place(model: ModelConfig) -> None:
    """Refuse what Marian has no place for, by the name of the setting."""
    theirs = {
        "kind": "transformer", "norm": "post", "score": "scaled_dot", "positions": "sinusoidal",
    }  # fmt: skip
    for name, value in theirs.items():
        if getattr(model, name) != value:
            raise ModelError(
                "{setting} has no place in Marian, which has {theirs}",
                setting=f'model.{name} = "{getattr(model, name)}"',
                theirs=f'"{value}"',
            )


def _their_config(
    model: ModelConfig, sizes: tuple[int, int], ids: Mapping[str, int], dtype: str
) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for side, (layers, heads, width) in (("encoder", model.encoder), ("decoder", model.decoder)):
        sides |= {
            f"{side}_layers": layers, f"{side}_attention_heads": heads, f"{side}_ffn_dim": width,
        }  # fmt: skip
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "d_model": model.d_model,
        **sides,
        "activation_function": model.activation,
        "scale_embedding": model.scale_embeddings,
        "max_position_embeddings": model.max_len,
        "share_encoder_decoder_embeddings": model.share == "all",
        "tie_word_embeddings": model.share != "none",
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        "bos_token_id": None,
        "pad_token_id": ids["pad"],
        "eos_token_id": ids["eos"],
        "forced_eos_token_id": ids["eos"],
        "decoder_start_token_id": ids["bos"],
        "dtype": "float16" if dtype == "float16" else "float32",
    }


def _generation(carried: Carried, ids: Mapping[str, int]) -> dict[str, Any]:
    decode = carried.facts.get("decode", {})
    longest = carried.model.max_len
    table: dict[str, Any] = {
        "num_beams": decode.get("beam", 1),
        "length_penalty": decode.get("length_penalty", 1.0),
        "max_length": min(decode.get("max_len") or longest, longest) + 1,
        "decoder_start_token_id": ids["bos"],
        "pad_token_id": ids["pad"],
        "eos_token_id": ids["eos"],
        "forced_eos_token_id": ids["eos"],
        "no_repeat_ngram_size": decode.get("no_repeat", 0),
    }
    if table["num_beams"] > 1:
        table["early_stopping"] = True  # as our search ends
    if decode.get("renormalize"):
        table["renormalize_logits"] = True
    if forbidden := [list(words) for words in decode.get("forbidden", [])]:
        table["bad_words_ids"] = forbidden
    return table


def _their_card(carried: Carried) -> str:
    lines = [
        carried.card,
        "## As a Marian of Hugging Face",
        "",
        "`MarianMTModel` and `MarianTokenizer` load this directory by `from_pretrained`; with",
        "`early_stopping=True`, `generate` searches as regard does. Text is expected in Unicode's",
        "form NFC.",
    ]
    if codes := carried.src_tokenizer.vocab.languages:
        asks = ", ".join(f"`>>{code}<<`" for code in [*codes][:8])
        lines.append(f"A language is asked for directly before the text: {asks}.")
    return "\n".join(lines) + "\n"


def _card(path: Path, model: ModelConfig, facts: Mapping[str, Any]) -> str:
    ways = ", ".join(f"{src or '?'} → {tgt or '?'}" for src, tgt in facts["directions"][:8])
    lines = [
        "# A Marian model, in regard's form",
        "",
        f"Imported by regard {__version__}; it computes what it computed there.",
        "",
        f"- from → to: {ways}",
        f"- network: {model.in_words}",
        f"- punctuation is normalised: {facts['punctuation']}",
    ]
    readme = path / "README.md"
    if readme.is_file():
        lines += ["", "What its makers say of it:", "", readme.read_text("utf-8", "replace")]
    return "\n".join(lines) + "\n"
