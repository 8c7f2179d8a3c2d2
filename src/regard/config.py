"""All settings, with their defaults, their meaning, and what they cannot be.

Only assembly code sees a config; the networks and the library take plain numbers. Nothing heavy is
imported here: a saved model's settings are read by programs that never load torch.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from regard.errors import ConfigError
from regard.settings import check_types, shown

T = TypeVar("T")


def setting(default: T, words: str) -> T:
    """A setting with its default, and what it means: the comment beside it in a written recipe."""
    value: T = field(default=default, metadata={"words": words})
    return value


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What is needed to rebuild the network, and so what is saved beside its weights.

    The defaults are the paper's base model.
    """

    kind: Literal["transformer", "recurrent"] = setting(
        "transformer", "transformer, or recurrent: Bahdanau's GRU with additive attention"
    )
    d_model: int = setting(512, "width of every vector between the layers")
    n_layers: int | tuple[int, int] = setting(
        6, "layers of both sides, or a pair: [encoder, decoder]"
    )
    n_heads: int | tuple[int, int] = setting(
        8, "heads that share d_model in an attention; both sides, or a pair"
    )
    d_ff: int | tuple[int, int] = setting(
        2048, "width inside the feed-forward layers; both sides, or a pair"
    )
    norm: Literal["post", "pre"] = setting(
        "post", "layer norm after each sublayer, as in the paper, or before it: steadier when deep"
    )
    activation: Literal["relu", "swish"] = setting("relu", "of the feed-forward layers")
    score: Literal["scaled_dot", "dot", "additive", "gaussian"] = setting(
        "scaled_dot", "how well a key matches a query"
    )
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = setting(
        "sinusoidal", "how a token knows its place"
    )
    max_len: int = setting(1024, "the most tokens of a sentence that positions are made for")
    share: Literal["all", "target", "none"] = setting(
        "all", "embeddings the output shares its matrix with: both, the target's, or none"
    )
    scale_embeddings: bool = setting(True, "embeddings times the root of d_model, as in the paper")
    output_bias: bool = setting(False, "whether each word of the output has a bias")
    dropout: float = setting(0.1, "of embeddings and of what each sublayer adds")
    attention_dropout: float = setting(0.0, "of attention weights")
    activation_dropout: float = setting(0.0, "inside the feed-forward layers")

    def __post_init__(self) -> None:
        check_types("model", self)
        faults = [
            *self._size_faults(),
            *self._head_faults(),
            *self._dropout_faults(),
            *self._unused_faults(),
        ]
        if faults:
            raise ConfigError("{faults}", faults=tuple(faults))

    @property
    def encoder(self) -> tuple[int, int, int]:
        """Layers, heads and feed-forward width of the encoder."""
        return self._side(0)

    @property
    def decoder(self) -> tuple[int, int, int]:
        """Layers, heads and feed-forward width of the decoder."""
        return self._side(1)

    @property
    def in_words(self) -> str:
        """The network in one line; what differs is encoder+decoder."""
        pairs = zip(self.encoder, self.decoder, strict=True)
        (layers, more_layers), *others = pairs
        heads, d_ff = (f"{one}" if one == two else f"{one}+{two}" for one, two in others)
        return (
            f"{self.kind}, {layers}+{more_layers} layers, d {self.d_model}, {heads} heads, "
            f"d_ff {d_ff}, {self.norm}-norm, {self.score} scores"
        )

    def _side(self, side: int) -> tuple[int, int, int]:
        layers, heads, width = (
            size if isinstance(size, int) else size[side]
            for size in (self.n_layers, self.n_heads, self.d_ff)
        )
        return layers, heads, width

    def _size_faults(self) -> Iterable[ConfigError]:
        for setting_name in ("d_model", "n_layers", "n_heads", "d_ff", "max_len"):
            for name, value in self._named(setting_name):
                if value < 1:
                    yield ConfigError(
                        "model.{name} = {value} must be at least {least}",
                        name=name,
                        value=value,
                        least=1,
                    )

    def _named(self, name: str) -> Iterable[tuple[str, int]]:
        """A size by its name, or each of a pair by its place: n_heads[1] is the decoder's."""
        value = getattr(self, name)
        if isinstance(value, int):
            return [(name, value)]
        return [(f"{name}[{side}]", size) for side, size in enumerate(value)]

    def _head_faults(self) -> Iterable[ConfigError]:
        for name, n_heads in self._named("n_heads"):
            if n_heads < 1 or self.d_model < 1:
                continue  # told above
            if self.d_model % n_heads:
                yield ConfigError(
                    "model.d_model = {d_model} is not a multiple of model.{name} = {n_heads}",
                    d_model=self.d_model,
                    name=name,
                    n_heads=n_heads,
                )
            elif self.positions == "rotary" and self.d_model // n_heads % 2:
                yield ConfigError(
                    'model.positions = "rotary" turns pairs, but model.d_model = {d_model} over '
                    "model.{name} = {n_heads} gives heads of odd width",
                    d_model=self.d_model,
                    name=name,
                    n_heads=n_heads,
                )
        if self.d_model % 2 and (self.positions == "sinusoidal" or self.kind == "recurrent"):
            yield ConfigError(
                "model.d_model = {d_model} is odd; sines and cosines, and the two directions of a "
                "recurrent encoder, come in pairs",
                d_model=self.d_model,
            )

    def _dropout_faults(self) -> Iterable[ConfigError]:
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                yield ConfigError(
                    "model.{name} = {value} is no probability below 1",
                    name=name,
                    value=getattr(self, name),
                )

    def _unused_faults(self) -> Iterable[ConfigError]:
        """A setting that would change nothing is a misunderstanding, not a choice."""
        if self.kind == "transformer":
            return
        for f in fields(self):
            if f.name in _TRANSFORMER_ONLY and getattr(self, f.name) != f.default:
                yield ConfigError(
                    'model.{name} = {value} has no meaning for model.kind = "{kind}"',
                    name=f.name,
                    value=shown(getattr(self, f.name)),
                    kind=self.kind,
                )


# Choices, not sizes: a recipe may say d_ff or n_heads and still serve both kinds.
_TRANSFORMER_ONLY = (
    "norm",
    "activation",
    "score",
    "positions",
    "attention_dropout",
    "activation_dropout",
)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which text, how it is cleaned, and how it becomes tokens."""

    task: Literal["none", "copy", "reverse", "sort", "numerals"] = setting(
        "none", "a task that is made up instead of read from files"
    )
    task_pairs: int = setting(200_000, "how many pairs of the task to make")
    train: tuple[str, ...] = setting(
        (), "training text: directories, prefixes (a for a.zh and a.en), or files of pairs"
    )
    weights: tuple[float, ...] = setting((), "how often each of them is read; none: once")
    dev: str = setting("", "development text; empty: that beside the training text, or held out")
    test: str = setting("", "test text, kept out of training; empty: that beside the training text")
    src_lang: str = setting("", "language to translate from; empty: as the file names say")
    tgt_lang: str = setting("", "language to translate to; empty: as the file names say")
    both_directions: bool = setting(
        False, "one model for both, by a token in front of the source that asks for a language"
    )
    on_bad: Literal["drop", "stop"] = setting("drop", "what to do about a line that is no text")
    max_ratio: float = setting(0.0, "most times as long as the other a side may be; 0: no limit")
    dedup: bool = setting(False, "whether a pair that was there before is dropped")
    script: bool = setting(False, "whether a side in another script than its language's is dropped")
    drop_overlap: bool = setting(True, "whether pairs of dev and test are dropped from training")
    max_len: int = setting(256, "the most tokens of a side; longer pairs are dropped or split")
    long: Literal["drop", "split"] = setting("drop", "what to do about longer pairs")
    form: Literal["nfc", "half", "nfkc", "none"] = setting(
        "nfc", "Unicode form of all text; half: nfc with full-width letters and digits made half"
    )
    han: Literal["keep", "simplified", "traditional"] = setting("keep", "script of Chinese text")
    tokenizer: Literal["unigram", "bpe", "char", "word"] = setting("unigram", "kind of tokens")
    vocab_size: int = setting(8000, "tokens in the vocabulary")
    joint: bool = setting(True, "one vocabulary for both languages")
    sampled: bool = setting(False, "a new segmentation of each sentence in each epoch")
    source: dict[str, dict[str, str]] = field(default_factory=dict)  # address, sha256, licence

    def __post_init__(self) -> None:
        check_types("data", self)
        faults = [*self._source_faults(), *self._number_faults()]
        if faults:
            raise ConfigError("{faults}", faults=tuple(faults))

    def _source_faults(self) -> Iterable[ConfigError]:
        if self.task != "none" and self.train:
            yield ConfigError(
                'data.train is given and so is data.task = "{task}"; choose one', task=self.task
            )
        if self.both_directions and (
            self.task in ("copy", "reverse", "sort") or self.src_lang == self.tgt_lang != ""
        ):
            yield ConfigError(
                "data.both_directions needs two different languages to tell the directions apart"
            )
        if "-" in self.train:
            yield ConfigError(
                "data.train reads its corpus more than once, so it cannot be stdin; save it first"
            )
        if self.weights and len(self.weights) != len(self.train):
            yield ConfigError(
                "data.weights has {weights} numbers but data.train has {corpora} corpora",
                weights=len(self.weights),
                corpora=len(self.train),
            )

    def _number_faults(self) -> Iterable[ConfigError]:
        for name in ("task_pairs", "max_len", "vocab_size"):
            if getattr(self, name) < 1:
                yield ConfigError(
                    "data.{name} = {value} must be at least 1", name=name, value=getattr(self, name)
                )
        if any(weight <= 0.0 for weight in self.weights):
            yield ConfigError(
                "data.weights = {value} must all be above 0", value=shown(self.weights)
            )
        if self.max_ratio and self.max_ratio < 1.0:
            yield ConfigError(
                "data.max_ratio = {value} would drop every pair; it says how many times as long "
                "one side may be as the other",
                value=self.max_ratio,
            )


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the weights are found."""

    steps: int = setting(20_000, "updates of the weights")
    tokens: int | Literal["auto"] = setting(
        4096, "tokens of each side in a batch; auto: as many as the memory holds"
    )
    batching: Literal["padded", "packed"] = setting(
        "padded", "rows filled up to the longest, or all sentences end to end (for a GPU)"
    )
    accumulate: int = setting(1, "batches to an update")
    lr: float = setting(7e-4, "learning rate at the end of the warm-up")
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = setting(
        "inverse_sqrt", "how the rate falls after the warm-up"
    )
    warmup: int = setting(4000, "updates until the rate is reached")
    label_smoothing: float = setting(0.1, "share of each target that is spread over all words")
    r_drop: float = setting(
        0.0, "weight of R-Drop, by which two passes with other dropout agree; 0: one pass"
    )
    clip: float = setting(1.0, "longest gradient; longer ones are shortened to it")
    seed: int = setting(1, "of weights, order, dropout and sampling")
    precision: Literal["auto", "float32", "bf16"] = setting(
        "auto", "auto: bf16 on a GPU that has it, else float32"
    )
    compile: Literal["auto", "on", "off"] = setting(
        "auto", "auto: compiled with packed batches on a GPU"
    )
    parallel: Literal["ddp", "fsdp"] = setting(
        "ddp", "several processes each hold the whole model, or a share of it"
    )
    ema: float = setting(0.0, "weights are a running average that keeps this share; 0: none")
    average: int = setting(0, "weights are the average of this many checkpoints; 0: none")
    average_of: Literal["last", "best"] = setting("last", "which checkpoints are averaged")
    snapshots: tuple[int, ...] = setting((), "updates after which the model is kept to look at")
    metric: Literal["loss", "accuracy", "bleu", "chrf", "exact"] = setting(
        "loss", "of the development text: what is best, and what patience waits for"
    )
    patience: int = setting(0, "validations without a better metric before it stops; 0: never")
    validate_every: int = setting(1000, "updates between validations; each is followed by a save")
    save_every: int = setting(1000, "updates between checkpoints")
    log_every: int = setting(50, "updates between lines of the log")
    workers: int = setting(0, "processes that make batches ahead")
    device: str = setting("auto", "cpu, cuda, cuda:1; auto: a GPU if there is one")

    def __post_init__(self) -> None:
        check_types("train", self)
        faults = [*self._number_faults(), *self._share_faults(), *self._device_faults()]
        if faults:
            raise ConfigError("{faults}", faults=tuple(faults))

    def _number_faults(self) -> Iterable[ConfigError]:
        counts = ("steps", "tokens", "accumulate", "validate_every", "save_every", "log_every")
        least = {
            **dict.fromkeys(counts, 1),
            "warmup": 0,
            "average": 0,
            "patience": 0,
            "workers": 0,
            "r_drop": 0,
            "seed": 0,
        }
        for name, bound in least.items():
            value = getattr(self, name)
            if value != "auto" and value < bound:
                yield ConfigError(
                    "train.{name} = {value} must be at least {least}",
                    name=name,
                    value=value,
                    least=bound,
                )
        if any(step < 1 for step in self.snapshots):
            yield ConfigError(
                "train.snapshots = {value} must be numbers of updates, the first of which is 1",
                value=shown(self.snapshots),
            )
        for name in ("lr", "clip"):
            if getattr(self, name) <= 0:
                yield ConfigError(
                    "train.{name} = {value} must be above 0", name=name, value=getattr(self, name)
                )

    def _share_faults(self) -> Iterable[ConfigError]:
        for name in ("label_smoothing", "ema"):
            if not 0.0 <= getattr(self, name) < 1.0:
                yield ConfigError(
                    "train.{name} = {value} must be at least 0 and below 1",
                    name=name,
                    value=getattr(self, name),
                )
        if self.ema and self.average:
            yield ConfigError(
                "train.ema = {ema} and train.average = {average} are two ways to average weights; "
                "choose one",
                ema=self.ema,
                average=self.average,
            )

    def _device_faults(self) -> Iterable[ConfigError]:
        if not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", self.device):
            yield ConfigError(
                'train.device = "{value}" is not one of auto, cpu, cuda, cuda:0, cuda:1',
                value=self.device,
            )


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        if self.model.share == "all" and not self.data.joint:
            raise ConfigError(
                'data.joint = false makes two vocabularies, but model.share = "all" needs one; '
                'set model.share = "target", or keep data.joint = true'
            )

    def as_table(self) -> dict[str, dict[str, Any]]:
        """The settings as nested dictionaries, defaults filled in."""
        return asdict(self)


Section = ModelConfig | DataConfig | TrainConfig
