"""Checkpoints of fairseq's `transformer` architectures, read without running what they hold.

    SRC/  checkpoint_best.pt (or any one .pt)
          dict.LANG.txt of both languages, or one dict.txt: "word count" on each line
          bpecodes (or code, codes), or sentencepiece.bpe.model; or neither: words stay whole

Positions: fairseq's have other frequencies than the paper's and begin at the padding's id plus one,
so they become a table of ours. A target starts from the end's id, which our vocabulary calls `bos`.
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
from regard.interchange.names import (
    DOORS,
    LEARNED_POSITIONS,
    gathered,
    places,
    with_todays_names,
    without_copies,
)
from regard.interchange.pickled import Settings, read_inert
from regard.interchange.probe import probed
from regard.interchange.taken import Floats, Weights
from regard.tensors import check_finite
from regard.text.codes import code_tokenizer
from regard.text.mapped import mapped_tokenizer
from regard.text.normalize import Normalizer
from regard.text.tokenizer import Tokenizer
from regard.text.vocab import BOS, EOS, PAD, UNK, Vocabulary

CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")
CODES = ("bpecodes", "code", "codes", "bpe.codes")
SENTENCEPIECE = ("sentencepiece.bpe.model", "spm.model", "sentencepiece.model")
FIRST = (BOS, PAD, EOS, UNK)  # with these each of fairseq's dictionaries begins
BEAM = 5  # fairseq's own default

DEFAULTS: dict[str, Any] = {
    "encoder_embed_dim": 512, "decoder_embed_dim": 512, "decoder_output_dim": None,
    "encoder_layers": 6, "encoder_attention_heads": 8, "encoder_ffn_embed_dim": 2048,
    "decoder_layers": 6, "decoder_attention_heads": 8, "decoder_ffn_embed_dim": 2048,
    "encoder_normalize_before": False, "decoder_normalize_before": False,
    "encoder_learned_pos": False, "decoder_learned_pos": False,
    "no_token_positional_embeddings": False, "no_scale_embedding": False,
    "share_all_embeddings": False, "share_decoder_input_output_embed": False,
    "max_source_positions": 1024, "max_target_positions": 1024, "activation_fn": "relu",
    "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "layernorm_embedding": False, "adaptive_softmax_cutoff": None, "no_cross_attention": False,
    "cross_self_attention": False, "encoder_layers_to_keep": None, "decoder_layers_to_keep": None,
    "no_decoder_final_norm": False,
}  # fmt: skip
ABSENT = (
    "layernorm_embedding", "adaptive_softmax_cutoff", "no_cross_attention", "cross_self_attention",
    "encoder_layers_to_keep", "decoder_layers_to_keep", "no_decoder_final_norm",
)  # fmt: skip
"""What our network does not have, and so must not be set."""
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish"}


def read_fairseq(path: Path) -> Carried:
    """The model of a directory, or of a checkpoint with its dictionaries beside it."""
    file = path if path.is_file() else checkpoint_in(path)
    found = read_inert(file)
    args = _args(file, found)
    weights = _array_table(file, found)
    check_finite(weights)
    model = _model(file, args, has_bias=DOORS["fairseq"]["bias"] in weights)
    tokenizers = _tokenizers(file.parent, args)
    own = _own_weights(model, args, weights, tokenizers)
    directions = [[str(args.get("source_lang") or ""), str(args.get("target_lang") or "")]]
    vocab = tokenizers[1].vocab
    facts = {
        "regard": __version__,
        "directions": directions,
        "weights": f"imported from fairseq, {args.get('arch', 'transformer')}",
        "decode": {"beam": BEAM, "forbidden": [[vocab.pad]]},
        "probe": probed(tokenizers),
    }
    return Carried(model, *tokenizers, own, facts, _card(model, facts))


def checkpoint_in(directory: Path) -> Path:
    """The checkpoint of a directory: the best, the last, or the only one."""
    found = sorted(directory.glob("*.pt"))
    named = [directory / name for name in CHECKPOINTS if (directory / name) in found]
    if not named and len(found) != 1:
        raise ModelError(
            "{path} has {n} files that end in .pt, none of them called {names}; name the one",
            path=directory,
            n=len(found),
            names=", ".join(CHECKPOINTS),
        )
    return named[0] if named else found[0]


def _args(file: Path, found: Any) -> dict[str, Any]:
    """The options the model was made with: `args` of old, `cfg.model` of new checkpoints."""
    own = found if isinstance(found, dict) else {}
    cfg = own.get("cfg")
    sections = [own.get("args")]
    if isinstance(cfg, dict):
        sections = [cfg.get("task"), cfg.get("model")]
    tables = [
        section.table() if isinstance(section, Settings) else section
        for section in sections
        if isinstance(section, Settings | dict)
    ]
    if not tables or not isinstance(own.get("model"), dict):
        raise ModelError("{path} is no checkpoint of fairseq: it has no {name}", path=file,
                         name="args or cfg" if not tables else "model")  # fmt: skip
    args = {name: value for table in tables for name, value in _flat(table).items()}
    arch = str(args.get("arch") or args.get("_name") or "transformer")
    if not arch.startswith("transformer") or "lm" in arch.split("_"):
        raise ModelError(
            '{path} is of arch = "{found}"; of fairseq\'s models regard reads those called '
            "transformer",
            path=file,
            found=arch,
        )
    return {**DEFAULTS, **args, "arch": arch}


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their old names: encoder.layers of the newest checkpoints is encoder_layers."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if name in ("encoder", "decoder") and isinstance(value, dict):
            flat |= {f"{name}_{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


def _array_table(file: Path, found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The weights by name."""
    wrong = [name for name, value in found["model"].items() if not isinstance(value, np.ndarray)]
    if wrong:
        raise ModelError(
            "{path} is no checkpoint of fairseq: it has no {name}", path=file, name=wrong[0]
        )
    return dict(found["model"])


def _model(file: Path, args: Mapping[str, Any], *, has_bias: bool) -> ModelConfig:
    _check_settings(file, args)
    share = "none"
    if args["share_decoder_input_output_embed"]:
        share = "target"
    if args["share_all_embeddings"]:
        share = "all"
    positions = "none" if args["no_token_positional_embeddings"] else "learned"
    try:
        return ModelConfig(
            d_model=args["encoder_embed_dim"],
            n_layers=(args["encoder_layers"], args["decoder_layers"]),
            n_heads=(args["encoder_attention_heads"], args["decoder_attention_heads"]),
            d_ff=(args["encoder_ffn_embed_dim"], args["decoder_ffn_embed_dim"]),
            norm="pre" if args["encoder_normalize_before"] else "post",
            activation=ACTIVATIONS[args["activation_fn"]],  # type: ignore[arg-type]
            positions=positions,  # type: ignore[arg-type]
            max_len=min(args["max_source_positions"], args["max_target_positions"]),
            share=share,  # type: ignore[arg-type]
            scale_embeddings=not args["no_scale_embedding"],
            output_bias=has_bias,
            dropout=float(args["dropout"]),
            attention_dropout=float(args["attention_dropout"]),
            activation_dropout=float(args["activation_dropout"]),
        )
    except (ConfigError, TypeError, ValueError) as error:
        faults = (error,) if isinstance(error, ConfigError) else str(error)
        raise ModelError("{path}: {faults}", path=file, faults=faults) from None


def _check_settings(file: Path, args: Mapping[str, Any]) -> None:
    """Refuse what our network has no place for; all of it at once."""
    wrong = [f"{name} = {args[name]}" for name in ABSENT if args[name]]
    if args["activation_fn"] not in ACTIVATIONS:
        wrong.append(f"activation_fn = {args['activation_fn']}")
    d_model = args["encoder_embed_dim"]
    for name in ("decoder_embed_dim", "decoder_output_dim"):
        if args[name] not in (d_model, None):
            wrong.append(f"{name} = {args[name]} beside encoder_embed_dim = {d_model}")
    if bool(args["encoder_normalize_before"]) != bool(args["decoder_normalize_before"]):
        wrong.append("a norm that comes before on one side and after on the other")
    if wrong:
        raise ModelError(
            "{path} has what regard has no place for: {wrong}", path=file, wrong="; ".join(wrong)
        )


def _own_weights(
    model: ModelConfig,
    args: Mapping[str, Any],
    found: Mapping[str, NDArray[Any]],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> dict[str, Floats]:
    n_src, n_tgt = (len(one.vocab) for one in tokenizers)
    weights = Weights(without_copies(model, with_todays_names(found), "fairseq"))
    own = gathered(places(model, n_src, n_tgt, "fairseq"), weights)
    if model.positions == "learned":
        for stack, side in (("encoder", "source"), ("decoder", "target")):
            own[f"{side}.positions.table"] = _positions(model, args, weights, stack)
    weights.check()
    return own


def _positions(model: ModelConfig, args: Mapping[str, Any], weights: Weights, stack: str) -> Floats:
    """What is added at each place: learned rows, or sines and then cosines.

    The padding's id, 1, has a row of its own, so the first place has the row behind it.
    """
    first = FIRST.index(PAD) + 1
    if args[f"{stack}_learned_pos"]:
        most = args["max_source_positions" if stack == "encoder" else "max_target_positions"]
        table = weights.take(LEARNED_POSITIONS.format(stack=stack), most + first, model.d_model)
        return table[first : first + model.max_len]
    half = model.d_model // 2
    frequencies = np.exp(np.arange(half) * -np.log(10000.0) / (half - 1))
    angles = np.arange(first, first + model.max_len)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _tokenizers(directory: Path, args: Mapping[str, Any]) -> tuple[Tokenizer, Tokenizer]:
    src, tgt = (
        _tokenizer(directory, _dictionary(directory, str(args.get(f"{side}_lang") or "")))
        for side in ("source", "target")
    )
    return src, tgt


def _dictionary(directory: Path, language: str) -> Vocabulary:
    path = directory / f"dict.{language}.txt"
    if not path.is_file() and (directory / "dict.txt").is_file():
        path = directory / "dict.txt"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ModelError("there is no file {path}", path=path) from None
    except UnicodeDecodeError:
        lines = [""]
    rows = [line.removesuffix(" #fairseq:overwrite").rsplit(" ", 1) for line in lines]
    bad = [place for place, row in enumerate(rows, 1) if len(row) != 2 or not row[1].isdigit()]
    if bad:
        raise ModelError(
            "{path}, line {line} is no line of a dictionary: a word, a space, its count",
            path=path,
            line=bad[0],
        )
    ids = {piece: id for id, piece in enumerate(FIRST)}
    try:
        return Vocabulary(
            (*FIRST, *(word for word, _ in rows)),
            pad=ids[PAD], bos=ids[EOS], eos=ids[EOS], unk=ids[UNK],
        )  # fmt: skip
    except ConfigError as error:
        raise ModelError("{path}: {faults}", path=path, faults=(error,)) from None


def _tokenizer(directory: Path, vocab: Vocabulary) -> Tokenizer:
    nothing = Normalizer(form="none")
    for name in SENTENCEPIECE:
        if (path := directory / name).is_file():
            return mapped_tokenizer(path, path.read_bytes(), vocab, nothing)
    for name in CODES:
        if (path := directory / name).is_file():
            return code_tokenizer(path, path.read_bytes(), vocab, nothing)
    return code_tokenizer(directory, b"", vocab, nothing)


def _card(model: ModelConfig, facts: Mapping[str, Any]) -> str:
    [[src, tgt]] = facts["directions"]
    return (
        "# A model of fairseq, in regard's form\n\n"
        f"Imported by regard {__version__}; it computes what it computed there.\n\n"
        f"- from → to: {src or '?'} → {tgt or '?'}\n"
        f"- network: {model.in_words}\n"
        "- text is cut at spaces, and then by the codes it came with: where it was trained on\n"
        "  tokenised text, give it such\n"
    )
