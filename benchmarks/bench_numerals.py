"""What a newcomer does first, timed: `regard train` with no argument, then 2,000 unseen values.

python benchmarks/bench_numerals.py [--write]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from regard import __version__
from regard.data.tasks import examples
from regard.decode.translator import load

RESULTS = Path(__file__).parent / "results" / "numerals_2-core-cpu_202611.md"
UNSEEN = 2000


def trained(folder: Path) -> tuple[Path, float]:
    """The model that the command leaves in a folder, and the seconds it took with all it does."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "regard", "train"], cwd=folder, check=True)
    return folder / "regard-model", time.perf_counter() - start


def n_exact(model: Path) -> int:
    """How many of the values that were held out it gets right to the letter."""
    unseen = list(islice(examples("numerals", 1, "test"), UNSEEN))
    said = load(model).translate([one.src for one in unseen])
    return sum(str(one) == example.tgt for one, example in zip(said, unseen, strict=True))


def main() -> None:
    """Train, translate, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, seconds = trained(Path(folder))
        right = n_exact(model)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=RESULTS.parent
    ).stdout.strip()
    minutes, rest = divmod(round(seconds), 60)
    text = f"""# `regard train` with no argument, 2-core CPU, November 2026

`python benchmarks/bench_numerals.py`: Chinese numerals to English from nothing, start, evaluation
and saving included, then {UNSEEN:,} held-out values; regard {__version__} at commit {commit}.

| task | time | right | exact |
|---|--:|--:|--:|
| numerals | {minutes} min {rest} s | {right:,} of {UNSEEN:,} | {100 * right / UNSEEN:.2f} % |
"""
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
