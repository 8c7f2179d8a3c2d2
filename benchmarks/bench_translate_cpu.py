"""Translation speed on a CPU: regard's engines against Hugging Face `generate` and CTranslate2.

    python benchmarks/bench_translate_cpu.py --data DIR [--models small base] [--rounds 7] [--write]

The same weights in every engine: the Tatoeba `small` of tests/models, and the same made base-size,
so that it says the same words at the cost of a base model. DIR holds `test_hans.zh.gz` of the
Tatoeba Challenge; its first 1,000 sentences are dealt to the rounds, and in a round every system
translates the same ones, each in a process of its own, one after the other. Hugging Face and
CTranslate2 start from ready ids, in order of length, at the batch size that suits them best; regard
goes from raw text to raw text. A ratio is the median of the rounds', with its spread.
"""

import argparse
import gzip
import itertools
import multiprocessing
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from regard import __version__
from regard.bundle import Bundle, open_bundle, write_bundle
from regard.config import ModelConfig
from regard.decode.search import Search

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "tests" / "models" / "tatoeba-zh-en"
RESULTS = Path(__file__).parent / "results" / "translate_2-core-cpu_202611.md"
SENTENCES, ALONE = 1000, 12  # in all, and of a round those translated one by one
BASE_SENTENCES, BASE_ALONE = 32, 4  # of a round of the base-size model
BATCHES = (16, 32, 64)
PAUSE = 0.5  # seconds: threads of the system before wait busily for a while for more work
BEAMS = (1, 5)


Work = Callable[[], list[str]]
System = Callable[[Sequence[str], int, int], Work]  # texts, beam, batch: made ready, then timed


def hugging_face(bundle: Bundle) -> System:
    from peers import m2m100

    network, src, tgt = m2m100.build(bundle), bundle.src_tokenizer, bundle.tgt_tokenizer

    def ready(texts: Sequence[str], beam: int, batch: int) -> Work:
        rows = [[*ids, src.vocab.eos] for ids in src.encode_all(texts)]

        def work() -> list[str]:
            said = {}
            for chosen in by_length(rows, batch):
                found = m2m100.generate(
                    network,
                    [rows[i] for i in chosen],
                    beam=beam,
                    pad=src.vocab.pad,
                )
                said.update(zip(chosen, found, strict=True))
            return [_decoded(said[i], tgt) for i in range(len(rows))]

        return work

    return ready


def ctranslate2(bundle: Bundle, dtype: str = "float32") -> System:
    import ctranslate2 as engine

    from regard.interchange.ctranslate2 import converted, source_word, target_word

    path = str(converted(bundle, dtype))  # type: ignore[arg-type]
    many = engine.Translator(path, inter_threads=2, intra_threads=1, compute_type="default")
    one = engine.Translator(path, inter_threads=1, intra_threads=2, compute_type="default")
    src, tgt = bundle.src_tokenizer, bundle.tgt_tokenizer
    ids_of = {target_word(id): id for id in range(len(tgt.vocab))}

    def ready(texts: Sequence[str], beam: int, batch: int) -> Work:
        rows = [
            [*map(source_word, ids), source_word(src.vocab.eos)] for ids in src.encode_all(texts)
        ]
        longest = 2 * max(map(len, rows)) + 20
        translator = one if len(rows) == 1 or batch == 1 else many

        def work() -> list[str]:
            said: dict[int, list[str]] = {}
            groups = list(by_length(rows, batch)) if batch == 1 else [list(range(len(rows)))]
            for chosen in groups:
                found = translator.translate_batch(
                    [rows[i] for i in chosen],
                    beam_size=beam,
                    max_batch_size=batch,
                    max_input_length=0,
                    max_decoding_length=longest,
                    return_scores=False,
                )
                said.update(zip(chosen, (one.hypotheses[0] for one in found), strict=True))
            return [_decoded([ids_of[word] for word in said[i]], tgt) for i in range(len(rows))]

        return work

    return ready


def regard_engine(bundle: Bundle, engine: str = "torch", dtype: str = "float32") -> System:
    from regard.decode.translator import load

    translator = load(bundle.path, engine=engine, dtype=dtype)  # type: ignore[arg-type]

    def ready(texts: Sequence[str], beam: int, batch: int) -> Work:
        search = Search(beam=beam)
        groups = [[text] for text in texts] if batch == 1 else [list(texts)]

        def work() -> list[str]:
            found = [translator.translate(group, search=search) for group in groups]
            return [one.text for group in found for one in group]

        return work

    return ready


def int8(bundle: Bundle) -> System:
    return regard_engine(bundle, "ctranslate2", "int8")


def float32(bundle: Bundle) -> System:
    return regard_engine(bundle, "ctranslate2")


SYSTEMS: dict[str, Callable[[Bundle], System]] = {
    "Hugging Face `generate`": hugging_face,
    "regard, torch": regard_engine,
    "CTranslate2 on ids": ctranslate2,
    "regard, ctranslate2": float32,
    "regard, ctranslate2 int8": int8,
}
PEER, TORCH, READY, FLOAT32, INT8 = SYSTEMS
BY_BATCH = (PEER, READY)  # what is told a batch size; the others choose their own


def by_length(rows: Sequence[Sequence[object]], batch: int) -> Iterator[list[int]]:
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch):
        yield order[start : start + batch]


def _decoded(ids: Sequence[int], tokenizer: object) -> str:
    vocab = tokenizer.vocab  # type: ignore[attr-defined]
    end = list(ids).index(vocab.eos) if vocab.eos in ids else len(ids)
    text: str = tokenizer.decode(ids[:end])  # type: ignore[attr-defined]
    return text


# --- a process for each system, which take turns


def serve(pipe: Connection, name: str, path: Path) -> None:
    system = SYSTEMS[name](open_bundle(path))
    pipe.send("ready")
    while (job := pipe.recv()) is not None:
        work = system(*job)
        start = time.perf_counter()
        said = work()
        pipe.send((time.perf_counter() - start, said))


def start(name: str, path: Path) -> Connection:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=serve, args=(theirs, name, path), daemon=True).start()
    ours.recv()
    return ours


def ask(pipe: Connection, texts: Sequence[str], beam: int, batch: int) -> tuple[float, list[str]]:
    time.sleep(PAUSE)
    pipe.send((texts, beam, batch))
    answer: tuple[float, list[str]] = pipe.recv()
    return answer


# --- measurements


def measure(path: Path, rounds: Sequence[Sequence[str]], alone: int) -> list[str]:
    """The lines of one model's tables."""
    pipes = {name: start(name, path) for name in SYSTEMS}
    for pipe in pipes.values():
        for beam, batch in itertools.product(BEAMS, (1, BATCHES[0])):
            ask(pipe, rounds[0][:alone], beam, batch)  # loaded and warm before the clock starts
    best = {
        (name, beam): best_batch(pipes[name], rounds[0], beam)
        for name in BY_BATCH
        for beam in BEAMS
    }
    lines = [
        "| search | batch | "
        + " | ".join(f"{name}, sent/s" for name in SYSTEMS)
        + " | torch ÷ generate | ctranslate2 ÷ CTranslate2 | int8 ÷ generate |",
        "|---|--:|" + "--:|" * (len(SYSTEMS) + 3),
    ]
    same = {TORCH: [0, 0], FLOAT32: [0, 0]}
    for beam in BEAMS:
        for batch in (1, 0):
            seconds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
            for number, texts in enumerate(rounds):
                texts = texts[:alone] if batch == 1 else texts
                said = {}
                names = list(pipes)
                for name in names if number % 2 else reversed(names):  # nobody is always second
                    pipe = pipes[name]
                    size = batch or best.get((name, beam), 0)
                    took, said[name] = ask(pipe, texts, beam, size)
                    seconds[name].append(took / len(texts))
                for name, counts in same.items():
                    counts[0] += sum(a == b for a, b in zip(said[name], said[PEER], strict=True))
                    counts[1] += len(texts)
            sizes = "1" if batch else f"{best[PEER, beam]} / {best[READY, beam]}"
            lines.append(row(beam, sizes, seconds))
    for pipe in pipes.values():
        pipe.send(None)
    lines += [
        "",
        *(
            f"{name}: {100 * equal / total:.1f} % of all outputs as `generate` has them."
            for name, (equal, total) in same.items()
        ),
    ]
    return lines


def best_batch(pipe: Connection, texts: Sequence[str], beam: int) -> int:
    """The batch size with which a system is fastest."""
    return min(BATCHES, key=lambda size: ask(pipe, texts, beam, size)[0])


def row(beam: int, sizes: str, seconds: dict[str, list[float]]) -> str:
    speeds = (f"{1 / statistics.median(values):,.1f}" for values in seconds.values())
    pairs = ((TORCH, PEER), (FLOAT32, READY), (INT8, PEER))
    ratios = (ratio(seconds[theirs], seconds[ours]) for ours, theirs in pairs)
    search = "greedy" if beam == 1 else f"beam {beam}"
    return f"| {search} | {sizes} | {' | '.join(speeds)} | {' | '.join(ratios)} |"


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> str:
    values = [a / b for a, b in zip(theirs, ours, strict=True)]
    return f"**{statistics.median(values):.2f}** ({min(values):.2f}–{max(values):.2f})"


def floor_lines(bundle: Bundle) -> list[str]:
    """What one sentence at a time cannot be faster than: every weight is read for every word."""
    import torch
    from safetensors.torch import load_file

    many = torch.ones(1 << 28)  # 1 GiB: no cache holds it
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        many.sum()
        times.append(time.perf_counter() - begin)
    bandwidth = many.numel() * 4 / statistics.median(times)
    weights = load_file(bundle.weights)
    n = sum(w.numel() for name, w in weights.items() if not name.startswith("encoder."))
    return [
        f"Floor of one sentence at a time: {4 * n / 1e6:.0f} MB of decoder and output weights in "
        f"float32 at the {bandwidth / 1e9:.1f} GB/s measured here are "
        f"{4e3 * n / bandwidth:.2f} ms a token (int8: {1e3 * n / bandwidth:.2f} ms).",
    ]


def base_bundle(directory: Path, small: Bundle) -> Path:
    """The small model made base-size: it says the same, at the cost of a base model.

    Every coordinate stands twice, which changes no norm and no attention; a matrix halves what it
    is given twice. Layers above the first three add nothing, but are computed.
    """
    import torch
    from safetensors.torch import load_file, save_file

    from regard.attention.positions import sinusoidal_positions
    from regard.model.build import build_model

    config = ModelConfig(norm="pre", positions="learned", max_len=small.model.max_len)
    tokenizers = small.src_tokenizer, small.tgt_tokenizer
    torch.manual_seed(1)
    network = build_model(config, *(len(tokenizer.vocab) for tokenizer in tokenizers))
    weights = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    for name, tensor in weights.items():
        if name.endswith(("out.weight", "out.bias", "outer.weight", "outer.bias")):
            tensor.zero_()
    rows = sinusoidal_positions(config.max_len, small.model.d_model).float()
    for side in ("source", "target"):
        weights[f"{side}.positions.table"] = torch.cat([rows, rows], dim=1)
    for name, tensor in load_file(small.weights).items():
        tensor = tensor.float()
        n_parts = 3 if ".qkv." in name else 2 if ".key_value." in name else 1
        if name == "source.weight":  # both scaled by the root of the width, which has grown
            tensor = torch.cat([tensor, tensor], dim=1) / 2**0.5
        else:
            tensor = torch.cat([part for part in tensor.chunk(n_parts) for _ in (0, 1)])
            tensor = torch.cat([tensor, tensor], dim=1) / 2 if tensor.ndim == 2 else tensor
        weights[name] = tensor / 2**0.5 if name.startswith("decoder.norm") else tensor
    write_bundle(
        directory / "base",
        config,
        tokenizers,
        lambda path: save_file({name: w.contiguous() for name, w in weights.items()}, path),
        facts={"directions": [["zh", "en"]]},
        card="The Tatoeba small, made base-size.",
    )
    return directory / "base"


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=("small", "base"), default=["small", "base"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with gzip.open(asked.data / "test_hans.zh.gz", "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file][:SENTENCES]
    dealt, alone = [texts[n :: asked.rounds] for n in range(asked.rounds)], ALONE
    lines = heading(asked.rounds)
    with tempfile.TemporaryDirectory() as directory:
        for name in asked.models:
            bundle = open_bundle(SMALL)
            if name == "base":
                bundle = open_bundle(base_bundle(Path(directory), bundle))
                dealt, alone = [part[:BASE_SENTENCES] for part in dealt], BASE_ALONE
            lines += ["", f"## {name}", "", *measure(bundle.path, dealt, alone)]
            lines += ["", *floor_lines(bundle)]
            print("\n".join(lines), flush=True)
    if asked.write:
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def heading(n_rounds: int) -> list[str]:
    import ctranslate2 as engine
    import torch
    import transformers

    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    return [
        f"# Translating on a {torch.get_num_threads()}-core CPU, {datetime.now(UTC):%B %Y}",
        "",
        "`python benchmarks/bench_translate_cpu.py`: the same weights in every engine, float32 "
        "unless it says int8; 1,000 sentences of Tatoeba's test set for the small model (d 256, "
        f"3+3 layers), {BASE_SENTENCES} a round for the base-size one (d 512, 6+6 layers; the "
        "small one widened, so it says the same). Hugging Face and CTranslate2 start from ids, at "
        "their best batch size; regard goes from text to text. "
        f"{n_rounds} interleaved rounds, {torch.get_num_threads()} threads; torch "
        f"{torch.__version__}, transformers {transformers.__version__}, CTranslate2 "
        f"{engine.__version__}, regard {__version__} at commit {commit}. Ratios: median (spread).",
    ]


if __name__ == "__main__":
    main()
