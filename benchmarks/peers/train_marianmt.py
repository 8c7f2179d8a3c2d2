"""Hugging Face MarianMT on a recipe's data, in the plain loop one would write for it.

    python benchmarks/peers/train_marianmt.py OUT NAME RECIPE --seconds 240 [--set a.b=c]...

The recipe gives text, vocabulary, size, batch, schedule and smoothing: both train the same thing.
Padded batches of like lengths, bf16 autocast on a GPU, fused Adam, the last checkpoints averaged as
the recipe says. It trains until --seconds have gone by since the command began, data included, and
then says dev and test by `generate` with a beam of 5. No validations: they would cost it time.
Files as by benchmarks/train_and_translate.py.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

STARTED = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402
import transformers  # noqa: E402
from peers import marianmt  # noqa: E402
from torch import Tensor  # noqa: E402
from train_and_translate import hardware, lines_of, splits_of, write_lines  # noqa: E402
from transformers import GenerationConfig, MarianMTModel  # noqa: E402

from regard.config import Config  # noqa: E402
from regard.data.prepare import Prepared, prepare  # noqa: E402
from regard.recipe import read_config  # noqa: E402
from regard.train.optim import make_schedule  # noqa: E402

Ids = list[int]
POOL = 100  # batches whose pairs are sorted by length together
AT_ONCE = 128  # sentences that are translated together


def padded(rows: Sequence[Ids], pad: int, device: torch.device) -> Tensor:
    """Rows filled up to the longest."""
    width = max(map(len, rows))
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)


def batches(pairs: list[tuple[Ids, Ids]], tokens: int, seed: int) -> Iterator[list[int]]:
    """For ever: shuffled, sorted by length within pools, cut where either side is full."""
    generator = random.Random(seed)
    order = list(range(len(pairs)))
    sizes = [max(len(src), len(tgt)) for src, tgt in pairs]
    per_pool = POOL * tokens // max(1, sum(sizes) // len(sizes))
    while True:
        generator.shuffle(order)
        made: list[list[int]] = [[]]
        for start in range(0, len(order), per_pool):
            for i in sorted(order[start : start + per_pool], key=lambda i: sizes[i]):
                if sizes[i] * (len(made[-1]) + 1) > tokens:
                    made.append([])
                made[-1].append(i)
        generator.shuffle(made)
        yield from (batch for batch in made if batch)


def built(config: Config, prepared: Prepared) -> MarianMTModel:
    """The recipe's network by the peer's own class."""
    sizes = config.model
    assert isinstance(sizes.n_layers, int)
    assert isinstance(sizes.n_heads, int)
    assert isinstance(sizes.d_ff, int)
    vocab = prepared.tgt_tokenizer.vocab
    return marianmt.build(
        n_words=len(vocab),
        d_model=sizes.d_model,
        n_layers=sizes.n_layers,
        n_heads=sizes.n_heads,
        d_ff=sizes.d_ff,
        dropout=sizes.dropout,
        pad=vocab.pad,
    )


def train(
    model: MarianMTModel, config: Config, prepared: Prepared, seconds: float
) -> tuple[int, float]:
    """Updates until the time is up, then the last checkpoints averaged; updates and tokens/s."""
    settings, vocab, data = config.train, prepared.tgt_tokenizer.vocab, prepared.dataset
    device = next(model.parameters()).device
    pairs = [([*data.src[i].tolist(), vocab.eos], data.tgt[i].tolist()) for i in range(len(data))]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.lr, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    rate = make_schedule(settings.schedule, settings.lr, settings.warmup, settings.steps)
    assert isinstance(settings.tokens, int)
    feed = batches(pairs, settings.tokens, settings.seed)
    kept: deque[dict[str, Tensor]] = deque(maxlen=max(1, settings.average))
    n_tokens, began = 0, time.perf_counter()
    for step in count(1):
        chosen = [pairs[i] for i in next(feed)]
        src = padded([one for one, _ in chosen], vocab.pad, device)
        inputs = padded([[vocab.pad, *one] for _, one in chosen], vocab.pad, device)
        labels = padded([[*one, vocab.eos] for _, one in chosen], vocab.pad, device)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            marianmt.train_step(
                model,
                optimizer,
                src,
                (src != vocab.pad).long(),
                inputs,
                labels,
                pad=vocab.pad,
                smoothing=settings.label_smoothing,
                clip=settings.clip,
            )
        n_tokens += sum(len(one) + 1 for _, one in chosen)
        is_over = time.perf_counter() - STARTED > seconds
        if step % settings.save_every == 0 or is_over:
            kept.append({name: value.clone() for name, value in model.state_dict().items()})
        if is_over:
            break
    speed = n_tokens / (time.perf_counter() - began)
    model.load_state_dict(
        {name: sum(one[name] for one in kept) / len(kept) for name in kept[0]}  # type: ignore[misc]
    )
    return step, speed


@torch.inference_mode()
def translated(model: MarianMTModel, prepared: Prepared, texts: list[str], beam: int) -> list[str]:
    """What the model says, by its own `generate`, batches of like lengths."""
    vocab, tokenizer = prepared.tgt_tokenizer.vocab, prepared.src_tokenizer
    device = next(model.parameters()).device
    rows = [[*tokenizer.encode(text.strip()), vocab.eos] for text in texts]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    said = [""] * len(rows)
    for start in range(0, len(rows), AT_ONCE):
        chosen = order[start : start + AT_ONCE]
        src = padded([rows[i] for i in chosen], vocab.pad, device)
        settings = GenerationConfig(
            num_beams=beam,
            early_stopping=True,
            max_new_tokens=2 * src.shape[1] + 20,
            pad_token_id=vocab.pad,
            eos_token_id=vocab.eos,
            decoder_start_token_id=vocab.pad,
            use_cache=True,
        )
        found = model.generate(
            input_ids=src, attention_mask=(src != vocab.pad).long(), generation_config=settings
        )
        for i, ids in zip(chosen, found.tolist(), strict=True):
            said[i] = prepared.tgt_tokenizer.decode([id for id in ids if id != vocab.pad])
    return said


def main() -> None:
    """Prepare, train, translate, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--beam", type=int, default=5)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    config = read_config(asked.recipe, asked.set)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(config.train.seed)
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(config.data, Path(folder), seed=config.train.seed)
        model = built(config, prepared).to(device).train()
        updates, speed = train(model, config, prepared, asked.seconds)
    seconds = time.perf_counter() - STARTED
    model.eval()
    facts = {
        "what": f"Hugging Face MarianMT, transformers {transformers.__version__}, plain loop",
        "seconds": round(seconds, 1),
        "updates": updates,
        "target_tokens_per_s": round(speed),
        "parameters": sum(one.numel() for one in model.parameters()),
        "recipe": asked.recipe.name,
        "settings": asked.set,
        "seed": config.train.seed,
        "corpus": Path(config.data.train[0]).name,
        "beam": asked.beam,
        "hardware": hardware(),
        "torch": torch.__version__,
    }
    for split, source in splits_of(config).items():
        texts = lines_of(source)
        translated(model, prepared, texts[:64], asked.beam)
        start = time.perf_counter()
        said = translated(model, prepared, texts, asked.beam)
        facts["sentences_per_s"] = round(len(texts) / (time.perf_counter() - start), 1)
        write_lines(asked.out / f"{asked.name}.{split}.{config.data.tgt_lang}", said)
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    (asked.out / f"{asked.name}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
