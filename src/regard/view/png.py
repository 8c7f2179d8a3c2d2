"""A drawing as PNG, in the light theme, by matplotlib, which is loaded only for this."""

import importlib
import warnings
from pathlib import Path
from typing import Any

from regard.errors import ResourceError
from regard.view.colours import themed
from regard.view.drawing import (
    FAMILIES,
    Cells,
    Circle,
    Drawing,
    Line,
    Polyline,
    Rect,
    Shape,
    Text,
    writable,
)

LATIN = "DejaVu Sans"  # comes with matplotlib, so it is always there
POINTS_PER_INCH = 72  # at this resolution matplotlib's points are our pixels
SIDES = {"start": "left", "middle": "center", "end": "right"}
ENDS = {"start": "top", "middle": "center", "end": "bottom"}  # of text that goes down


def write_png(drawing: Drawing, path: Path, *, scale: int = 2) -> str:
    """Write the file, and give back the characters that no font of this machine can show."""
    try:
        matplotlib = _loaded()
    except ImportError as error:
        raise ResourceError(
            "{path} needs matplotlib, which cannot be imported ({reason}); "
            "pip install 'regard[plots]', or name a file that ends in .svg",
            path=path,
            reason=error,
        ) from error
    texts = [writable(shape.text) for shape in drawing.shapes if isinstance(shape, Text)]
    families, unshown = _families(matplotlib, set("".join(texts)))
    dpi = POINTS_PER_INCH * scale
    # Half a pixel more, because matplotlib rounds the size down.
    size = ((drawing.width * scale + 0.5) / dpi, (drawing.height * scale + 0.5) / dpi)
    figure = matplotlib.figure.Figure(figsize=size, dpi=dpi)
    downwards = matplotlib.transforms.Affine2D().scale(scale, -scale)
    downwards.translate(0, drawing.height * scale)
    for depth, shape in enumerate(drawing.shapes):
        artist = figure.add_artist(_artist(matplotlib, shape, families))
        artist.set(transform=downwards, zorder=depth)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # told by what comes back
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure).print_png(path)
    return "".join(sorted(unshown))


def _loaded() -> Any:
    parts = ("backends.backend_agg", "collections", "figure", "font_manager", "lines", "patches")
    for name in (*parts, "text"):
        importlib.import_module(f"matplotlib.{name}")
    return importlib.import_module("matplotlib")


def _families(matplotlib: Any, characters: set[str]) -> tuple[list[str], set[str]]:
    """Fonts that together show the characters, and the characters that none of them shows."""
    families, unshown = [LATIN], characters - _shown(matplotlib, LATIN, characters)
    installed = {font.name for font in matplotlib.font_manager.fontManager.ttflist}
    for name in FAMILIES:
        found = _shown(matplotlib, name, unshown) if name in installed else set()
        if found:
            families.append(name)
            unshown = unshown - found
    return families, unshown


def _shown(matplotlib: Any, family: str, characters: set[str]) -> set[str]:
    if not characters:
        return set()
    fonts = matplotlib.font_manager
    known = fonts.get_font(fonts.findfont(fonts.FontProperties(family=family))).get_charmap()
    return {character for character in characters if ord(character) in known}


def _artist(matplotlib: Any, shape: Shape, families: list[str]) -> Any:
    match shape:
        case Rect(x, y, width, height):
            return matplotlib.patches.Rectangle(
                (x, y), width, height, color=_colour(shape.fill), alpha=shape.opacity, linewidth=0
            )
        case Circle(x, y, radius):
            return matplotlib.patches.Circle((x, y), radius, color=_colour(shape.fill), linewidth=0)
        case Line(start, end):
            return _line(matplotlib, shape, (start, end))
        case Polyline(points):
            return _line(matplotlib, shape, points)
        case Text():
            return _text(matplotlib, shape, families)
        case Cells():
            return _cells(matplotlib, shape)


def _line(matplotlib: Any, shape: Line | Polyline, points: tuple[tuple[float, float], ...]) -> Any:
    dash = tuple(length / shape.width for length in shape.dash)  # matplotlib counts in widths
    return matplotlib.lines.Line2D(
        [x for x, _ in points],
        [y for _, y in points],
        color=_colour(shape.colour),
        linewidth=shape.width,
        linestyle=(0, dash) if dash else "-",
        alpha=shape.opacity,
        solid_capstyle="butt",
        solid_joinstyle="round",
    )


def _cells(matplotlib: Any, shape: Cells) -> Any:
    corners, colours = [], []
    for row, levels in enumerate(shape.levels):
        for column, level in enumerate(levels):
            if level is None:
                continue
            x, y = shape.x + column * shape.width, shape.y + row * shape.height
            right, bottom = x + shape.width, y + shape.height
            corners.append([(x, y), (right, y), (right, bottom), (x, bottom)])
            colours.append(_colour(f"w{level}"))
    return matplotlib.collections.PolyCollection(
        corners, facecolors=colours, edgecolors="none", antialiaseds=False
    )


def _text(matplotlib: Any, shape: Text, families: list[str]) -> Any:
    text = writable(shape.text)
    return matplotlib.text.Text(
        shape.x,
        shape.y,
        "\n".join(text) if shape.is_stacked else text,
        color=_colour(shape.colour),
        fontfamily=families,
        fontsize=shape.size,
        fontweight="bold" if shape.is_bold else "normal",
        horizontalalignment="center" if shape.is_stacked else SIDES[shape.anchor],
        verticalalignment=ENDS[shape.anchor] if shape.is_stacked else "baseline",
        linespacing=1.0,
        rotation=-shape.turned,
        rotation_mode="anchor",
        parse_math=False,  # a run may be called $5$
        usetex=False,
    )


def _colour(colour: str) -> str:
    values = themed(colour)
    return values[0] if values else colour
