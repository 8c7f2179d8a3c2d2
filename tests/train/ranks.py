"""A run of 50 updates in float64, alone or as one of several ranks; its weights go to a file.

python ranks.py OUT KIND [STOP_AT]     KIND is ddp or fsdp; alone, six batches make an update
"""

import sys
from itertools import count
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from regard.config import ModelConfig
from regard.data.batch import padded_batch
from regard.data.feed import Place
from regard.model import build_model
from regard.model.weights import load_weights
from regard.text.vocab import Vocabulary
from regard.train.average import RunningAverage
from regard.train.checkpoint import newest_checkpoint, write_checkpoint
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.parallel import Parallel
from regard.train.trainer import Trainer

VOCAB = Vocabulary(("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh"), pad=0, bos=1, eos=2, unk=3)
BATCHES, STEPS = 6, 50  # batches to an update, over all ranks: one, two or three


def batch(number):
    """A batch of one to five pairs, of its number alone."""
    generator = np.random.default_rng(number)
    pairs = [
        generator.integers(4, 12, generator.integers(1, 9)) for _ in range(generator.integers(1, 6))
    ]
    return padded_batch(pairs, [ids[::-1].copy() for ids in pairs], VOCAB, VOCAB, range(len(pairs)))


def run(out, kind, stop_at):
    parallel = Parallel(kind, "cpu")
    torch.manual_seed(0)
    config = ModelConfig(d_model=12, n_heads=2, n_layers=2, d_ff=20, dropout=0.0)
    model = build_model(config, len(VOCAB), len(VOCAB)).double()
    checkpoint = newest_checkpoint(out)
    if checkpoint is not None:
        load_weights(model, checkpoint.weights)
    done = checkpoint.state.place.step if checkpoint is not None else 0
    own = ((Place(0, n + 1), batch(n)) for n in count(done) if n % parallel.ranks == parallel.rank)
    objective = Objective(model, pad=VOCAB.pad, smoothing=0.1)
    call = parallel.wrap(objective)
    trainer = Trainer(
        objective,
        own,
        make_optimizer(model.parameters(), 1e-2),
        make_schedule("inverse_sqrt", 1e-2, 10, STEPS),
        call=call,
        accumulate=BATCHES // parallel.ranks,
        parallel=parallel,
        average=RunningAverage(model, 0.9),
    )
    if checkpoint is not None:
        trainer.restore(checkpoint)
    trainer.fit(min(stop_at, STEPS))
    trainer.state.place = Place(0, trainer.state.step * BATCHES)
    found = trainer.checkpoint()
    if parallel.is_first:
        write_checkpoint(out, found)
        averages = {f"average.{name}": tensor for name, tensor in found.running_average.items()}
        save_file({**found.weights, **averages}, out / "weights.safetensors")
    parallel.leave()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else STEPS)
