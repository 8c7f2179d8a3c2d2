"""From settings to a dataset: the one place of this folder that sees a config.

    corpora -> pairs, mixed, in one direction or both -> filters -> tokenizers -> ids on disk

What is there already and was made of the same things is used again.
"""

import errno
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.config import DataConfig
from regard.data.corpus import Pair, Tally, mix, read_pairs
from regard.data.dataset import SIDES, PairDataset, build_dataset, fingerprint, open_dataset
from regard.data.files import all_files, check_sums, held_out_files, read_files, train_files
from regard.data.filters import filtered, pair_key, pair_keys
from regard.data.tasks import Split, examples
from regard.errors import ConfigError, DataError, ModelError, ResourceError
from regard.text.normalize import Normalizer
from regard.text.saved import RECORD
from regard.text.sentences import split_sentences
from regard.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

GIVEN = "given"  # what tokenizers were made of that came with a model
HELD_OUT_PAIRS = 2000  # of a generated task, for each of dev and test
HELD_OUT_SHARE, MOST_HELD_OUT = 50, 1000  # one pair in so many, for dev, where none is given
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None)
TASK_LANGUAGES = {"numerals": ("zh", "en")}


@dataclass(frozen=True)
class Prepared:
    """All that training needs of its data; the dataset knows what was left out on the way."""

    dataset: PairDataset
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    dev: list[Pair]
    directions: tuple[tuple[str, str], ...] = ()  # from which language to which


def prepare(
    config: DataConfig,
    directory: Path,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Callable[[int], None] = lambda n_pairs: None,
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
    vocabulary: str | None = None,
) -> Prepared:
    """The dataset of these settings in a directory, built if it is not there yet.

    Tokenizers are trained on the corpus unless they are given: a model that goes on learning keeps
    its own. `vocabulary` is the print of the one that weights belong to: no other will do.
    """
    check_sums(config)
    files = read_files(config)
    settings = _settings(config, seed)
    folders = tokenizer_folders(directory)
    made_of = fingerprint(files, [], settings) if tokenizers is None else GIVEN
    with _full_disk_told(directory):
        if vocabulary is not None:
            src, tgt = _kept(directory, vocabulary) or _made_again(
                directory, vocabulary, tokenizers or _trained(config, seed), made_of
            )
        elif tokenizers is None:
            src, tgt = _tokenizers(config, folders, seed, made_of)
        else:
            src, tgt = tokenizers
            _save(tokenizers, folders, made_of)
        _check_languages(config, src)
        dev = list(read_split(config, "dev", seed))
        print_of = fingerprint(files, folders, settings)
        try:
            dataset = open_dataset(directory / "dataset", print_of)
        except DataError:
            dropped: Counter[str] = Counter()
            pairs = training_pairs(config, seed, dropped)
            if config.long == "split":
                pairs = split_long(pairs, src, tgt, config.max_len)
            dataset = build_dataset(
                directory / "dataset",
                pairs,
                src,
                tgt,
                fingerprint=print_of,
                max_len=config.max_len,
                workers=workers,
                progress=progress,
                dropped=dropped,
            )
    return Prepared(dataset, src, tgt, dev, _directions(config))


def opened(config: DataConfig, directory: Path, *, seed: int = 1) -> Prepared:
    """What another process has prepared there; nothing is written."""
    folders = tokenizer_folders(directory)
    print_of = fingerprint(read_files(config), folders, _settings(config, seed))
    return Prepared(
        open_dataset(directory / "dataset", print_of),
        load_tokenizer(folders[0]),
        load_tokenizer(folders[1]),
        list(read_split(config, "dev", seed)),
        _directions(config),
    )


def vocabulary_print(directory: Path) -> str:
    """What the words and their numbers are, in 64 digits: records vouch for the other files."""
    records = [(folder / RECORD).read_bytes() for folder in tokenizer_folders(directory)]
    return hashlib.sha256(b"".join(records)).hexdigest()


def tokenizer_folders(directory: Path) -> list[Path]:
    """Where the tokenizer of each side lies."""
    return [directory / f"{side}_tokenizer" for side in SIDES]


def nothing_to_train_on() -> ConfigError:
    """What to say where the settings name neither text nor a task."""
    return ConfigError(
        "there is nothing to train on; give --src and --tgt, or set data.train or data.task"
    )


def text_print(config: DataConfig, seed: int) -> str:
    """What the pairs depend on, in 64 digits: every byte of their files, and how they are read."""
    return fingerprint(read_files(config), [], _settings(config, seed))


def training_pairs(config: DataConfig, seed: int, dropped: Counter[str]) -> Iterator[Pair]:
    """Every training pair that the settings keep; `dropped` counts the others by reason."""
    tally = Tally()
    if config.task != "none":
        pairs: Iterable[Pair] = _task_pairs(config, "train", seed, config.task_pairs)
    else:
        pairs = _mixed(config, seed, tally)
    dev = test = set[int]()
    is_chosen = not held_out_files(config, "dev")
    if config.task == "none" and (config.drop_overlap or is_chosen):
        dev, test = (pair_keys(read_split(config, split, seed)) for split in ("dev", "test"))
    yield from filtered(
        _directed(pairs, config),
        dropped,
        max_ratio=config.max_ratio,
        dedup=config.dedup,
        script=config.script,
        overlap=test if is_chosen else dev | test,
        held_out=dev if is_chosen else frozenset(),
    )
    dropped.update(tally.counts)


def read_split(config: DataConfig, split: Split, seed: int) -> Iterator[Pair]:
    """The development or test pairs, in both directions where training is; there may be none."""
    if config.task != "none":
        yield from _directed(_task_pairs(config, split, seed, HELD_OUT_PAIRS), config)
        return
    places = held_out_files(config, split)
    for files in places:
        yield from _directed(read_pairs(files, on_bad=config.on_bad), config)
    if split == "dev" and not places:
        yield from _directed(islice(_chosen(config), MOST_HELD_OUT), config)


def split_long(
    pairs: Iterable[Pair], src: Tokenizer, tgt: Tokenizer, max_len: int
) -> Iterator[Pair]:
    """Pairs too long for one sequence as several, where both sides have as many sentences."""
    for pair in pairs:
        if _fits(pair.src, src, max_len) and _fits(pair.tgt, tgt, max_len):
            yield pair
            continue
        parts = split_sentences(pair.src), split_sentences(pair.tgt)
        if len(parts[0]) == len(parts[1]):
            yield from (
                replace(pair, src=one.strip(), tgt=other.strip())
                for one, other in zip(*parts, strict=True)
                if one.strip() and other.strip()
            )
        else:
            yield pair  # which the dataset drops, and counts


def _fits(text: str, tokenizer: Tokenizer, max_len: int) -> bool:
    # No token is shorter than a byte, so most texts need not be tokenised to know.
    return len(text.encode()) <= max_len or len(tokenizer.encode(text)) <= max_len


def _directed(pairs: Iterable[Pair], config: DataConfig) -> Iterator[Pair]:
    for pair in pairs:
        yield pair
        if config.both_directions:
            yield replace(
                pair, src=pair.tgt, tgt=pair.src, src_lang=pair.tgt_lang, tgt_lang=pair.src_lang
            )


def _mixed(config: DataConfig, seed: int, tally: Tally) -> Iterator[Pair]:
    corpora = train_files(config)
    if not corpora:
        raise nothing_to_train_on()
    weights = config.weights or (1.0,) * len(corpora)
    return mix(
        [
            (weight, lambda files=files: read_pairs(files, on_bad=config.on_bad, tally=tally))  # type: ignore[misc]
            for weight, files in zip(weights, corpora, strict=True)
        ],
        seed,
    )


def _task_pairs(config: DataConfig, split: Split, seed: int, n_pairs: int) -> Iterator[Pair]:
    assert config.task != "none"
    src_lang, tgt_lang = TASK_LANGUAGES.get(config.task, ("", ""))
    for line, made in enumerate(islice(examples(config.task, seed, split), n_pairs), start=1):
        yield Pair(made.src, made.tgt, line, 0, src_lang, tgt_lang)


def _chosen(config: DataConfig) -> Iterator[Pair]:
    """Training pairs for a development set where there is none: by what they say, not by chance."""
    for files in train_files(config):
        for pair in read_pairs(files, on_bad=config.on_bad):
            if pair_key(pair.src, pair.tgt) % HELD_OUT_SHARE == 0:
                yield pair


def _settings(config: DataConfig, seed: int) -> dict[str, object]:
    languages = [(corpus.src_lang, corpus.tgt_lang) for corpus in all_files(config)]
    return {**asdict(config), "seed": seed, "languages": languages}


def _check_languages(config: DataConfig, tokenizer: Tokenizer) -> None:
    """A model of several directions is asked by a token, which its vocabulary must have."""
    if missing := [name for name in _languages(config) if name not in tokenizer.vocab.languages]:
        raise ConfigError(
            "data.both_directions = true, but the vocabulary has no token that asks for "
            "{languages}; a model learns both directions from its beginning or not at all",
            languages=", ".join(missing),
        )


@contextmanager
def _full_disk_told(directory: Path) -> Iterator[None]:
    """Say where the disk is full: the system does not, and some writers say not even that."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        raise ResourceError(
            "what is prepared for training cannot be written to {folder}: {reason}; free some "
            "space there, or name another place with -o",
            folder=directory,
            reason=error.strerror or error,
        ) from error


def _tokenizers(
    config: DataConfig, folders: list[Path], seed: int, print_of: str
) -> tuple[Tokenizer, Tokenizer]:
    """One for both sides or one for each: those there are, if made of the same, or new ones."""
    try:
        if all((folder / "made_of").read_bytes() == print_of.encode() for folder in folders):
            return load_tokenizer(folders[0]), load_tokenizer(folders[1])
    except (OSError, ModelError):
        pass
    made = _trained(config, seed)
    _save(made, folders, print_of)
    return made


def _save(tokenizers: tuple[Tokenizer, Tokenizer], folders: list[Path], made_of: str) -> None:
    for folder in folders:  # first, so that after a kill none vouches for what is half replaced
        (folder / "made_of").unlink(missing_ok=True)
    for tokenizer, folder in zip(tokenizers, folders, strict=True):
        tokenizer.save(folder)
    for folder in folders:
        (folder / "made_of").write_text(made_of)


def _kept(directory: Path, vocabulary: str) -> tuple[Tokenizer, Tokenizer] | None:
    """The tokenizers that are there, if they are those."""
    src, tgt = tokenizer_folders(directory)
    try:
        if vocabulary_print(directory) == vocabulary:
            return load_tokenizer(src), load_tokenizer(tgt)
    except (OSError, ModelError):
        pass
    return None


def _made_again(
    directory: Path, vocabulary: str, tokenizers: tuple[Tokenizer, Tokenizer], made_of: str
) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers in the place of those that were lost, if they are the same."""
    with TemporaryDirectory() as draft:
        _save(tokenizers, tokenizer_folders(Path(draft)), made_of)
        if vocabulary_print(Path(draft)) != vocabulary:
            raise ConfigError(
                "the vocabulary that the weights belong to is lost from {folder}, and what the "
                "settings make is another; resume with what the run began with, --from too if it "
                "began with a model",
                folder=directory,
            )
    _save(tokenizers, tokenizer_folders(directory), made_of)
    return tokenizers


def _trained(config: DataConfig, seed: int) -> tuple[Tokenizer, Tokenizer]:
    normalizer = Normalizer(
        form="nfc" if config.form == "half" else config.form,
        width="half" if config.form == "half" else "keep",
        han=config.han,
    )

    def trained(texts: Iterator[str]) -> Tokenizer:
        return train_tokenizer(
            texts,
            kind=config.tokenizer,
            size=config.vocab_size,
            normalizer=normalizer,
            languages=_languages(config),
        )

    def pairs() -> Iterator[Pair]:
        return training_pairs(replace(config, both_directions=False), seed, Counter())

    if config.joint:
        both = trained(text for pair in pairs() for text in (pair.src, pair.tgt))
        return both, both
    return trained(pair.src for pair in pairs()), trained(pair.tgt for pair in pairs())


def _languages(config: DataConfig) -> tuple[str, ...]:
    """The languages that a model of several directions can be asked for."""
    if not config.both_directions:
        return ()
    return tuple(dict.fromkeys(lang for way in _directions(config) for lang in way))


def _directions(config: DataConfig) -> tuple[tuple[str, str], ...]:
    """From which language to which the training text goes, each way once."""
    ways = [(files.src_lang, files.tgt_lang) for files in train_files(config)]
    if config.task in TASK_LANGUAGES:
        ways.append(TASK_LANGUAGES[config.task])
    back = [(tgt, src) for src, tgt in ways] if config.both_directions else []
    return tuple(dict.fromkeys([*ways, *back]))
