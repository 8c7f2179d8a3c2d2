"""Settings: a TOML file, overrides laid over it, checked, and frozen once.

    table  = TOML file  <-  section.name=value overrides
    Config = every name known, every value of its type, every combination possible

Only assembly code sees a config; the networks and the library take plain numbers. Nothing heavy is
imported here: a saved model's settings are read by programs that never load torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from regard.errors import ConfigError
from regard.settings import read_toml, shown, toml_value, type_fault, unknown


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What is needed to rebuild the network, and so what is saved beside its weights.

    The defaults are the paper's base model.
    """

    kind: Literal["transformer", "recurrent"] = "transformer"
    d_model: int = 512
    n_layers: int = 6
    n_heads: int = 8
    d_ff: int = 2048
    decoder_layers: int = 0  # 0, here and in the two below: as the encoder
    decoder_heads: int = 0
    decoder_d_ff: int = 0
    norm: Literal["post", "pre"] = "post"
    activation: Literal["relu", "swish"] = "relu"
    score: Literal["scaled_dot", "dot", "additive", "gaussian"] = "scaled_dot"
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    max_len: int = 1024
    share: Literal["all", "target", "none"] = "all"  # which embeddings the output map shares
    scale_embeddings: bool = True
    output_bias: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

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
    def decoder(self) -> tuple[int, int, int]:
        """Layers, heads and feed-forward width of the decoder: its own, or the encoder's."""
        return (
            self.decoder_layers or self.n_layers,
            self.decoder_heads or self.n_heads,
            self.decoder_d_ff or self.d_ff,
        )

    def _size_faults(self) -> Iterable[ConfigError]:
        sizes = {"d_model": 1, "n_layers": 1, "n_heads": 1, "d_ff": 1, "max_len": 1}
        for name, least in {**sizes, **dict.fromkeys(_DECODER_SIZES, 0)}.items():
            if getattr(self, name) < least:
                yield ConfigError(
                    "model.{name} = {value} must be at least {least}",
                    name=name,
                    value=getattr(self, name),
                    least=least,
                )

    def _head_faults(self) -> Iterable[ConfigError]:
        for name in ("n_heads", "decoder_heads"):
            n_heads = getattr(self, name)
            if n_heads < 1 or self.d_model < 1:
                continue  # told above, or the same as the encoder's
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

_DECODER_SIZES = ("decoder_layers", "decoder_heads", "decoder_d_ff")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which text, how it is cleaned, and how it becomes tokens."""

    task: Literal["none", "copy", "reverse", "sort", "numerals"] = "none"  # made up, not read
    task_pairs: int = 200_000
    train: tuple[str, ...] = ()  # directories, prefixes or files
    weights: tuple[float, ...] = ()  # how often each is read; none: once
    dev: str = ""  # empty, here and for test: those beside the training files
    test: str = ""
    src_lang: str = ""
    tgt_lang: str = ""
    both_directions: bool = False  # a token in front of the source asks for its target language
    on_bad: Literal["drop", "stop"] = "drop"
    max_ratio: float = 0.0  # 0: no limit
    dedup: bool = False
    script: bool = False
    drop_overlap: bool = True
    max_len: int = 256
    long: Literal["drop", "split"] = "drop"
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    width: Literal["keep", "half"] = "keep"
    han: Literal["keep", "simplified", "traditional"] = "keep"
    tokenizer: Literal["unigram", "bpe", "char", "word"] = "unigram"
    vocab_size: int = 8000
    joint: bool = True
    sampled: bool = False
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
        if self.max_ratio and self.max_ratio < 1.0:
            yield ConfigError(
                "data.max_ratio = {value} would drop every pair; it says how many times as long "
                "one side may be as the other",
                value=self.max_ratio,
            )


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the weights are found."""

    steps: int = 20_000
    tokens: int = 4096  # a batch, each side
    batching: Literal["padded", "packed"] = "padded"
    accumulate: int = 1
    lr: float = 7e-4
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    warmup: int = 4000
    label_smoothing: float = 0.1
    clip: float = 1.0
    seed: int = 1
    log_every: int = 50
    validate_every: int = 1000
    save_every: int = 1000
    keep: int = 2
    workers: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_types("train", self)
        positive = ("steps", "tokens", "accumulate", "log_every", "validate_every", "save_every")
        faults = [
            ConfigError(
                "train.{name} = {value} must be at least 1", name=name, value=getattr(self, name)
            )
            for name in (*positive, "keep")
            if getattr(self, name) < 1
        ]
        if faults:
            raise ConfigError("{faults}", faults=tuple(faults))


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def as_table(self) -> dict[str, dict[str, Any]]:
        """The settings as nested dictionaries, defaults filled in."""
        return asdict(self)


def read_config(path: Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """The settings of a TOML file, or the defaults, with `section.name=value` laid over them."""
    table: dict[str, Any] = read_toml(path) if path else {}
    for override in overrides:
        name, separator, value = override.partition("=")
        section, dot, setting = name.strip().partition(".")
        if not (separator and dot and section and setting):
            raise ConfigError(
                'override "{override}" is not of the form section.name=value, '
                "such as model.n_layers=3",
                override=override,
            )
        table.setdefault(section, {})
        if isinstance(table[section], dict):
            table[section][setting] = toml_value(value.strip())
    return config_from_table(table)


def config_from_table(table: Mapping[str, Any]) -> Config:
    """A Config from nested dictionaries; everything that is wrong with them is said at once."""
    sections = {f.name: f for f in fields(Config)}
    faults = [unknown(name, sections) for name in table if name not in sections]
    for name in sections.keys() & table.keys():
        faults += _section_faults(name, table[name])
    if faults:
        raise ConfigError("{faults}", faults=tuple(faults))
    made: dict[str, Any] = {name: _section(name, values) for name, values in table.items()}
    return Config(**made)


Section = ModelConfig | DataConfig | TrainConfig


def _section_class(section: str) -> type[Section]:
    classes: dict[str, type[Section]] = {
        "model": ModelConfig,
        "data": DataConfig,
        "train": TrainConfig,
    }
    return classes[section]


def _section(section: str, values: Mapping[str, Any]) -> Section:
    frozen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return _section_class(section)(**frozen)


def _section_faults(section: str, values: Any) -> list[ConfigError]:
    if not isinstance(values, dict):
        return [
            ConfigError(
                "{section} = {value} must be a section of settings, [{section}]",
                section=section,
                value=shown(values),
            )
        ]
    known: dict[str, Field[Any]] = {
        f"{section}.{f.name}": f for f in fields(_section_class(section))
    }
    faults = []
    for name, value in values.items():
        full = f"{section}.{name}"
        if full not in known:
            faults.append(unknown(full, known))
        elif fault := type_fault(full, known[full].type, value):
            faults.append(fault)
    return faults


def check_types(section: str, settings: "Section") -> None:
    """Every value is of its setting's type, however the settings came about."""
    faults = [
        fault
        for f in fields(settings)
        if (fault := type_fault(f"{section}.{f.name}", f.type, getattr(settings, f.name)))
    ]
    if faults:
        raise ConfigError("{faults}", faults=tuple(faults))
