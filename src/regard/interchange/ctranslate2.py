"""A bundle as a CTranslate2 model directory, made on first use and kept in the user's cache.

$REGARD_CACHE, or $XDG_CACHE_HOME/regard, or ~/.cache/regard
    ctranslate2/<what it was made of, as sha256>/
        model.bin config.json source_vocabulary.json target_vocabulary.json
        sums.json           sha256 of these; written last
    ctranslate2/lock        held while one of them is made

Words are named by their ids, so no piece can be spelled in a way that CTranslate2 reads otherwise.
Only making a directory imports torch, by `ctranslate2.specs`; using one does not.
"""

import atexit
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regard.bundle import Bundle
from regard.config import ModelConfig
from regard.errors import ModelError, ResourceError
from regard.interchange.carried import Carried
from regard.interchange.positions import position_table
from regard.interchange.probe import check_written
from regard.interchange.taken import Floats, Weights
from regard.storage import sha256, write_json, written_whole
from regard.tensors import Tensors, check_finite, read_tensors
from regard.text.vocab import Vocabulary

if TYPE_CHECKING:
    from ctranslate2 import Translator  # type: ignore[import-untyped]

Dtype = Literal["float32", "int8"]

NEVER = -1e4  # the bias of a word that is not to be said
CONVERTER = 1  # one more whenever a bundle would become another directory than before
SUMS = "sums.json"


def inexpressible(model: ModelConfig) -> str | None:
    """The setting that CTranslate2 has no word for; None if it can say them all."""
    if model.kind == "recurrent":
        return f'model.kind = "{model.kind}"'
    if model.score in ("additive", "gaussian"):
        return f'model.score = "{model.score}"'
    return None


def source_word(id: int) -> str:
    """The name of a source word.

    Not the target's: CTranslate2 would take its end, where it stands alone, for nothing to
    translate.
    """
    return f"s{id}"


def target_word(id: int) -> str:
    """The name of a target word."""
    return str(id)


def open_converted(bundle: Bundle, dtype: Dtype, *, parallel: int, threads: int) -> "Translator":
    """The bundle in CTranslate2: so many batches at once, with so many threads for each."""
    import ctranslate2

    return ctranslate2.Translator(
        str(converted(bundle, dtype)),
        device="cpu",
        compute_type="default",  # as it was stored, or what is nearest to it that this CPU can do
        inter_threads=parallel,
        intra_threads=threads,
    )


def converted(bundle: Bundle, dtype: Dtype) -> Path:
    """The directory of a bundle, from the cache or made now; it is whole when this returns."""
    cache = cache_folder()
    if cache is None:
        return _converted_for_now(bundle, dtype)
    place = cache / "ctranslate2" / _fingerprint(bundle, dtype)
    if _is_whole(place):
        return place
    try:
        with _locked(place.parent):
            if not _is_whole(place):  # else another process was first
                with written_whole(place) as building:
                    _write(bundle, building, dtype)
        return place
    except OSError:  # it is full, or not ours to write
        return _converted_for_now(bundle, dtype)


def _converted_for_now(bundle: Bundle, dtype: Dtype) -> Path:
    """The directory in a place that goes when this process does."""
    place = Path(tempfile.mkdtemp(prefix="regard-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    try:
        _write(bundle, place, dtype)
    except OSError as error:
        raise ResourceError(
            "{path} could not be written: {reason}", path=place, reason=error.strerror
        ) from None
    return place


def cache_folder() -> Path | None:
    """Where things are kept that can be made again; None if this user has no such place."""
    if own := os.environ.get("REGARD_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "regard"
    try:
        return Path.home() / ".cache" / "regard"
    except RuntimeError:
        return None


def _fingerprint(bundle: Bundle, dtype: Dtype) -> str:
    """All that a directory depends on, in 64 digits."""
    import ctranslate2

    vocab = bundle.tgt_tokenizer.vocab
    manifest = json.loads((bundle.path / "MANIFEST.json").read_text(encoding="utf-8"))
    made_of = {
        "weights": manifest["files"][bundle.weights.name]["sha256"],  # checked when it was opened
        "model": asdict(bundle.model),
        "words": [len(bundle.src_tokenizer.vocab), len(vocab), vocab.bos, vocab.eos, vocab.unk],
        "dtype": dtype,
        "converter": CONVERTER,
        "ctranslate2": ctranslate2.__version__,
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _is_whole(place: Path) -> bool:
    """Whether every file is as it was written."""
    try:
        sums = json.loads((place / SUMS).read_text(encoding="utf-8"))
        return bool(sums) and all(sha256(place / name) == sum for name, sum in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go of it when a process ends, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(bundle: Bundle, directory: Path, dtype: Dtype) -> None:
    convert(bundle, directory, dtype)
    write_json(directory / SUMS, {file.name: sha256(file) for file in sorted(directory.iterdir())})


def convert(bundle: Bundle, directory: Path, dtype: Dtype) -> None:
    """Write the CTranslate2 model of a bundle into a directory that is there and empty."""
    src, tgt = bundle.src_tokenizer.vocab, bundle.tgt_tokenizer.vocab
    spec = _spec(bundle.model, read_tensors(bundle.weights), len(src), len(tgt))
    src_words = [source_word(id) for id in range(len(src))]
    tgt_words = [target_word(id) for id in range(len(tgt))]
    _save(spec, directory, dtype, (src_words, tgt_words), tgt)


def write_ctranslate2(
    carried: Carried, path: Path, dtype: Literal["float32", "float16", "int8"]
) -> None:
    """The model as a directory for programs that use CTranslate2 themselves.

    Words are called by their pieces there. What is never to be said is so by its bias, for such a
    directory has no search of its own to forbid it.
    """
    sides = carried.src_tokenizer, carried.tgt_tokenizer
    src, tgt = sides[0].vocab, sides[1].vocab
    check_finite(carried.weights)
    spec = _spec(carried.model, carried.weights, len(src), len(tgt))
    never = [
        ids[0] for ids in carried.facts.get("decode", {}).get("forbidden", []) if len(ids) == 1
    ]
    if never:
        bias = np.zeros(len(tgt), np.float32)
        if carried.model.output_bias:
            bias += spec.decoder.projection.bias
        bias[never] = NEVER
        spec.decoder.projection.bias = bias
    with written_whole(path) as building:
        _save(spec, building, dtype, (list(src.pieces), list(tgt.pieces)), tgt)
        for tokenizer, side in zip(sides, ("src", "tgt"), strict=True):
            tokenizer.save(building / f"{side}_tokenizer")
        check_written(building, sides)
        (building / "README.md").write_text(carried.card, encoding="utf-8")


def _spec(model: ModelConfig, tensors: Tensors, n_src: int, n_tgt: int) -> Any:
    """The network in CTranslate2's words."""
    if setting := inexpressible(model):
        raise ModelError(
            "{setting} cannot be said in CTranslate2; translate with the torch engine",
            setting=setting,
        )
    from ctranslate2.specs import TransformerSpec  # type: ignore[import-untyped]

    spec = TransformerSpec(_encoder_spec(model), _decoder_spec(model))
    weights = Weights(tensors)
    _fill(spec, model, weights, n_src, n_tgt)
    weights.check()
    return spec


def _save(
    spec: Any, directory: Path, dtype: str, words: tuple[list[str], list[str]], tgt: Vocabulary
) -> None:
    spec.register_source_vocabulary(words[0])
    spec.register_target_vocabulary(words[1])
    spec.config.bos_token = spec.config.decoder_start_token = words[1][tgt.bos]
    spec.config.eos_token, spec.config.unk_token = words[1][tgt.eos], words[1][tgt.unk]
    spec.config.layer_norm_epsilon = 1e-5  # torch's
    spec.validate()
    spec.optimize(quantization="int8_float32" if dtype == "int8" else dtype)
    spec.save(str(directory))


def _encoder_spec(model: ModelConfig) -> Any:
    from ctranslate2.specs import TransformerEncoderSpec

    n_layers, n_heads, _ = model.encoder
    return TransformerEncoderSpec(
        n_layers,
        n_heads,
        pre_norm=model.norm == "pre",
        activation=_activation(model),
        rotary_dim=_rotary_dim(model, n_heads),
    )


def _decoder_spec(model: ModelConfig) -> Any:
    from ctranslate2.specs import TransformerDecoderSpec

    n_layers, n_heads, _ = model.decoder
    return TransformerDecoderSpec(
        n_layers,
        n_heads,
        pre_norm=model.norm == "pre",
        activation=_activation(model),
        rotary_dim=_rotary_dim(model, n_heads),
        alignment_layer=-1,  # attention is told of the last layer ...
        alignment_heads=0,  # ... as the mean over all its heads
    )


def _activation(model: ModelConfig) -> Any:
    from ctranslate2.specs import Activation

    return Activation.RELU if model.activation == "relu" else Activation.SWISH


def _rotary_dim(model: ModelConfig, n_heads: int) -> int | None:
    return model.d_model // n_heads if model.positions == "rotary" else None


def _fill(spec: Any, model: ModelConfig, weights: Weights, n_src: int, n_tgt: int) -> None:
    """Every weight of the network at its place in the spec."""
    d = model.d_model
    source = weights.take("source.weight", n_src, d)
    target = source if model.share == "all" else weights.take("target.weight", n_tgt, d)
    output = target if model.share != "none" else weights.take("output.weight", n_tgt, d)
    spec.encoder.embeddings[0].weight = source
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = output
    if model.output_bias:
        spec.decoder.projection.bias = weights.take("output.bias", n_tgt)
    for side, name, width in (
        (spec.encoder, "source", model.encoder[2]),
        (spec.decoder, "target", model.decoder[2]),
    ):
        side.scale_embeddings = model.scale_embeddings
        if model.positions != "rotary":
            side.position_encodings.encodings = _positions(model, weights, name)
        stack = "encoder" if name == "source" else "decoder"
        for number, layer in enumerate(side.layer):
            _fill_layer(layer, f"{stack}.layers.{number}", model, width, weights)
        if model.norm == "pre":
            _fill_norm(side.layer_norm, f"{stack}.norm", d, weights)


def _positions(model: ModelConfig, weights: Weights, side: str) -> Floats:
    """What is added to the words at each place, with one row more than the network has.

    For a search looks one word past its limit, to see who is not done there.
    """
    d, rows = model.d_model, model.max_len
    table = np.zeros((rows + 1, d), dtype=np.float32)
    if model.positions == "learned":
        table[:rows] = weights.take(f"{side}.positions.table", rows, d)
    elif model.positions == "sinusoidal":
        table = position_table(model, rows + 1)
    return table


def _fill_layer(layer: Any, name: str, model: ModelConfig, width: int, weights: Weights) -> None:
    d = model.d_model
    query_key_value, out = layer.self_attention.linear
    _fill_linear(query_key_value, f"{name}.attention.qkv", 3 * d, d, weights)
    _fill_linear(out, f"{name}.attention.out", d, d, weights)
    _fill_norm(layer.self_attention.layer_norm, f"{name}.attention_residual.norm", d, weights)
    attentions = [layer.self_attention]
    if hasattr(layer, "attention"):
        query, key_value, out = layer.attention.linear
        _fill_linear(query, f"{name}.cross_attention.query", d, d, weights)
        _fill_linear(key_value, f"{name}.cross_attention.key_value", 2 * d, d, weights)
        _fill_linear(out, f"{name}.cross_attention.out", d, d, weights)
        _fill_norm(layer.attention.layer_norm, f"{name}.cross_residual.norm", d, weights)
        attentions.append(layer.attention)
    if model.score == "dot":
        for attention in attentions:
            attention.queries_scale = 1.0  # else one over the root of a head's width
    _fill_linear(layer.ffn.linear_0, f"{name}.feed_forward.inner", width, d, weights)
    _fill_linear(layer.ffn.linear_1, f"{name}.feed_forward.outer", d, width, weights)
    _fill_norm(layer.ffn.layer_norm, f"{name}.feed_forward_residual.norm", d, weights)


def _fill_linear(linear: Any, name: str, rows: int, columns: int, weights: Weights) -> None:
    linear.weight = weights.take(f"{name}.weight", rows, columns)
    linear.bias = weights.take(f"{name}.bias", rows)


def _fill_norm(norm: Any, name: str, d: int, weights: Weights) -> None:
    norm.gamma = weights.take(f"{name}.weight", d)
    norm.beta = weights.take(f"{name}.bias", d)
