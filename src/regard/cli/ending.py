"""What a run says once it is done: how long it took, where the model is, and what to type next."""

import shlex
from pathlib import Path

from regard.data.prepare import Prepared


def last_words(prepared: Prepared, output: Path, folder: Path, seconds: float) -> tuple[str, str]:
    """The last lines, in English and in Chinese."""
    english, chinese = _duration(seconds)
    model, run = (shlex.quote(str(place)) for place in (output, folder))
    translate = f"regard translate --model {model} {shlex.quote(_example(prepared))}"
    plot = f"regard plot {run}"
    return (
        f"done in {english}: {output}\nnext: {translate}\n      {plot}",
        f"完成，用时{chinese}，模型在{output}\n接下来：{translate}\n        {plot}",
    )


def _duration(seconds: float) -> tuple[str, str]:
    if round(seconds) < 60:
        return f"{seconds:.0f} s", f"{seconds:.0f}秒"
    return f"{seconds / 60:.1f} min", f"{seconds / 60:.1f}分钟"


def _example(prepared: Prepared) -> str:
    """A sentence that can be translated: one to judge by, if there are any."""
    return prepared.dev[0].src if prepared.dev else prepared.dataset.src.sentence(0)
