"""Pictures of the page for the documentation: every view in every look.

    .venv/bin/python tools/screenshots.py [--only VIEW] [--model DIR] [--run DIR] [--out DIR]

The views are Work, the ten steps of Learn, and Training; the looks both languages, both themes,
desktop and phone. Needs a Chromium. The model is the one that comes along unless another is given.
Without a run the numerals are trained first, with the snapshots of the guide, and kept in
build/screenshots for the next time: three minutes. The pictures take five.
"""

import argparse
import re
import shutil
import struct
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
SENTENCE = "这本书我已经读过两遍了。"
NUMERAL = "四十万八千七百八十"  # for the run that is watched
STEPS = ("tokens", "positions", "qkv", "arithmetic", "scoring", "masks", "heads", "cross", "beam",
         "occlusion")  # fmt: skip
MORE: dict[str, dict[str, object]] = {
    "tokens": {},
    "positions": {"shuffle": 1},
    "qkv": {"head": 8, "row": 4},
    "arithmetic": {"head": 8, "row": 4},
    "scoring": {"d": 256, "head": 8, "row": 4},
    "masks": {"layer": 2},
    "heads": {"kind": "encoder"},
    "cross": {"sinks": 1, "row": 4},
    "beam": {"beam": 3},
    "occlusion": {"row": 4},
}
WIDTHS = {"desktop": 1280, "phone": 390}
LOOKS = tuple(product(("zh", "en"), ("light", "dark"), WIDTHS))
TALLEST = 3200  # of a picture: what is further down is like what is above
FREQUENT = 48  # colours of a picture that are kept as they are: grounds, lines, inks
RUN = ROOT / "build" / "screenshots" / "numerals"
SETTINGS = ("train.snapshots=[100, 400, 1000, 2600]", "train.validate_every=325")


def main() -> None:
    """Take them all."""
    views = views_of()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=views, metavar="VIEW")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures" / "page")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    wanted = list(product(asked.only or views, LOOKS))
    run = asked.run or trained()
    with serving(asked.model, run) as address, sync_playwright() as playwright:
        found = shutil.which("chromium") or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for number, (name, look) in enumerate(wanted, 1):
            path = asked.out / f"{'-'.join((name, *look))}.png"
            path.write_bytes(picture(browser, f"{address}/#{urlencode(views[name])}", *look))
            size = path.stat().st_size
            print(f"{number:2d} of {len(wanted)}: {path.name}, {size / 1000:.0f} kB", flush=True)
        browser.close()


def views_of() -> dict[str, dict[str, object]]:
    """What is shown: the name of each view and its address."""
    steps = {
        f"{number:02d}-{step}": {"mode": "learn", "step": number, "text": SENTENCE, **MORE[step]}
        for number, step in enumerate(STEPS, 1)
    }
    return {"work": {"text": SENTENCE}, **steps, "training": {"mode": "training", "text": NUMERAL}}


def trained() -> Path:
    """The model whose run is watched, trained if it is not there yet."""
    if not RUN.exists():
        command = [sys.executable, "-m", "regard", "train", "-o", str(RUN)]
        subprocess.run([*command, *(f"--set={one}" for one in SETTINGS)], check=True)
    return RUN


@contextmanager
def serving(model: Path | None, run: Path) -> Iterator[str]:
    """The address of a server, for as long as it is needed."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0", "--quiet"]
    command += ["--deadline", "120", "--run", str(run), *([str(model)] if model else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    match = re.search(r"http://\S+", process.stdout.readline())
    assert match is not None
    try:
        yield match[0]
    finally:
        process.terminate()
        process.wait()


def picture(browser: Browser, address: str, language: str, theme: str, width: str) -> bytes:
    """One picture, when all is there that will be."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 860},
        color_scheme="dark" if theme == "dark" else "light",
        locale="zh-CN" if language == "zh" else "en-US",
    )
    page = context.new_page()
    page.goto(address)
    page.locator(".rail svg, .step-body .card, .born .figure").first.wait_for(timeout=120_000)
    page.wait_for_load_state("networkidle")
    tall = int(page.evaluate("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": WIDTHS[width], "height": min(tall, TALLEST)}
    raw = page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
    pixels = context.new_page().evaluate(PIXELS, b64encode(raw).decode())
    rgb = np.frombuffer(b64decode(pixels), np.uint8).reshape(-1, WIDTHS[width], 4)[..., :3]
    context.close()
    return in_few_colours(rgb)


PIXELS = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  const parts = [];
  for (let at = 0; at < data.length; at += 32768) {
    parts.push(String.fromCharCode(...data.subarray(at, at + 32768)));
  }
  return btoa(parts.join(""));
}"""


def in_few_colours(rgb: NDArray[np.uint8]) -> bytes:
    """A PNG of the most frequent colours, and of of the others one of those alike."""
    height, width, _ = rgb.shape
    packed = rgb.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    table = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.int32)
    order = np.argsort(-counts, kind="stable")
    steps = np.where(np.ptp(table, axis=1, keepdims=True) > 32, 4, 5)  # letters are grey, maps not
    alike = np.concatenate([steps, table >> steps], 1)[order]
    _, first = np.unique(alike, axis=0, return_index=True)
    palette = table[order[np.union1d(np.arange(min(FREQUENT, len(order))), first)[:256]]]
    nearest = np.concatenate(
        [((some[:, None] - palette) ** 2).sum(-1).argmin(1) for some in np.array_split(table, 64)]
    ).astype(np.uint8)
    rows = nearest[places.reshape(height, width)]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes()
    packer = zlib.compressobj(9, memLevel=9)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", packer.compress(lines) + packer.flush()),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


if __name__ == "__main__":
    main()
