"""Pictures of the page for the documentation: both languages, both themes, desktop and phone.

    .venv/bin/python tools/screenshots.py [--model DIR] [--run DIR] [--out DIR]

Needs a Chromium. The model is the one that comes along unless another is given. With a run, its
curves are among them.
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
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
SENTENCE = "这本书我已经读过两遍了。"
STEPS = ("tokens", "positions", "qkv", "arithmetic", "scoring", "masks", "heads", "cross", "beam",
         "occlusion")  # fmt: skip
MORE: dict[str, dict[str, object]] = {
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
TALLEST = 2400  # of a picture: what is further down is like what is above


def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures" / "page")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with serving(asked.model, asked.run) as address, sync_playwright() as playwright:
        found = shutil.which("chromium") or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, state, language, theme, width in views(asked.run is not None):
            path = asked.out / f"{name}-{language}-{theme}-{width}.png"
            take(browser, f"{address}/#{urlencode(state)}", path, language, theme, WIDTHS[width])
        browser.close()


@contextmanager
def serving(model: Path | None, run: Path | None) -> Iterator[str]:
    """The address of a server, for as long as it is needed."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0", "--quiet"]
    command += ["--deadline", "120", *([str(model)] if model else [])]
    command += ["--run", str(run)] if run else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    match = re.search(r"http://\S+", process.stdout.readline())
    assert match is not None
    try:
        yield match[0]
    finally:
        process.terminate()
        process.wait()


def views(has_run: bool) -> Iterator[tuple[str, dict[str, object], str, str, str]]:
    """What is shown, in which language, theme and width."""
    looks = [(la, th, wi) for la in ("zh", "en") for th in ("light", "dark") for wi in WIDTHS]
    for look in looks:
        yield "work", {"text": SENTENCE}, *look
    for number, step in enumerate(STEPS, 1):
        state = {"mode": "learn", "step": number, "text": SENTENCE, **MORE.get(step, {})}
        some = (
            looks
            if step == "arithmetic"
            else [looks[number % 2 * 6], looks[3 if number % 2 else 5]]
        )
        for look in some:
            yield f"{number:02d}-{step}", state, *look
    if has_run:
        yield "training", {"mode": "training", "text": SENTENCE}, "en", "light", "desktop"
        yield "training", {"mode": "training", "text": SENTENCE}, "zh", "dark", "phone"


def take(browser: Browser, address: str, path: Path, language: str, theme: str, width: int) -> None:
    """One picture, when all is there that will be."""
    context = browser.new_context(
        viewport={"width": width, "height": 860},
        color_scheme="dark" if theme == "dark" else "light",
        locale="zh-CN" if language == "zh" else "en-US",
    )
    page = context.new_page()
    page.goto(address)
    page.locator(".rail svg, .step-body .card, .charts .figure").first.wait_for(timeout=120_000)
    if "mode=training" in address:
        page.wait_for_timeout(3000)
    page.wait_for_load_state("networkidle")
    tall = int(page.evaluate("document.documentElement.scrollHeight"))
    size = {"x": 0, "y": 0, "width": width, "height": min(tall, TALLEST)}
    raw = page.screenshot(full_page=True, clip=size)  # type: ignore[arg-type]
    blank = context.new_page()
    pixels = blank.evaluate(PIXELS, b64encode(raw).decode())
    rgb = np.frombuffer(b64decode(pixels), np.uint8).reshape(-1, width, 4)[..., :3]
    path.write_bytes(in_256_colours(rgb))
    context.close()


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


def in_256_colours(rgb: NDArray[np.uint8]) -> bytes:
    """A PNG of the 256 most frequent colours that differ; every other becomes the nearest."""
    height, width, _ = rgb.shape
    packed = rgb.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    table = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.int32)
    order = np.argsort(-counts, kind="stable")
    _, first = np.unique(table[order] >> 3, axis=0, return_index=True)  # one of those alike
    palette = table[order[np.sort(first)[:256]]]
    nearest = np.concatenate(
        [((some[:, None] - palette) ** 2).sum(-1).argmin(1) for some in np.array_split(table, 64)]
    ).astype(np.uint8)
    rows = nearest[places.reshape(height, width)]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes()
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


if __name__ == "__main__":
    main()
