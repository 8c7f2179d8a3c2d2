"""A drawing as SVG: text stays text, and it is readable on light and on dark pages.

Colours of the theme are variables that follow the reader's choice of light or dark; each shape also
has its light colour as an attribute, for programs that do not know variables.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from regard.view.colours import themed
from regard.view.drawing import (
    FAMILIES,
    LIGHT,
    Cells,
    Circle,
    Drawing,
    Line,
    Point,
    Polyline,
    Rect,
    Shape,
    Text,
    writable,
)

LATIN = ("system-ui", "Segoe UI", "Helvetica Neue", "Arial")


def svg(drawing: Drawing) -> str:
    """The whole file; it may also stand in the middle of a page of HTML."""
    width, height = _number(drawing.width), _number(drawing.height)
    families = [*LATIN, *FAMILIES, "sans-serif"]
    fonts = ", ".join(f"'{name}'" if " " in name else name for name in families)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f"aria-label={quoteattr(writable(drawing.title))} font-family={quoteattr(fonts)}>",
            f"<style>{_style(drawing.shapes)}</style>",
            *map(_element, drawing.shapes),
            "</svg>\n",
        )
    )


def _style(shapes: Iterable[Shape]) -> str:
    names = [*LIGHT, *_weight_names(shapes)]
    values = {name: themed(name) or ("", "") for name in names}
    uses = [*((use, name) for use in ("fill", "stroke") for name in LIGHT)]
    uses += [("fill", name) for name in names[len(LIGHT) :]]
    rules = [
        f".drawing{{{_variables({name: light for name, (light, _) in values.items()})}}}",
        "@media (prefers-color-scheme:dark){.drawing{"
        f"{_variables({name: dark for name, (_, dark) in values.items()})}}}}}",
        *(f".{use}-{name}{{{use}:var(--{name})}}" for use, name in uses),
    ]
    return "\n".join(rules)


def _weight_names(shapes: Iterable[Shape]) -> list[str]:
    """The colours of weights, and of text on top of them, that a drawing has."""
    names = set()
    for shape in shapes:
        if isinstance(shape, Cells):
            names |= {f"w{level}" for row in shape.levels for level in row if level is not None}
        elif isinstance(shape, Text) and shape.colour not in LIGHT and themed(shape.colour):
            names.add(shape.colour)
    return sorted(names, key=lambda name: (name[0], int(name[1:])))


def _variables(theme: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in theme.items())


def _element(shape: Shape) -> str:
    match shape:
        case Rect(x, y, width, height):
            numbers = _numbers(x=x, y=y, width=width, height=height)
            return f"<rect {numbers}{_paint('fill', shape.fill)}{_opacity(shape.opacity)}/>"
        case Circle(x, y, radius):
            return f"<circle {_numbers(cx=x, cy=y, r=radius)}{_paint('fill', shape.fill)}/>"
        case Line((x1, y1), (x2, y2)):
            return f"<line {_numbers(x1=x1, y1=y1, x2=x2, y2=y2)}{_stroke(shape)}/>"
        case Polyline(points):
            return f'<polyline points="{_points(points)}" fill="none"{_stroke(shape)}/>'
        case Text():
            return f"<text {''.join(_letters(shape))}>{escape(writable(shape.text))}</text>"
        case Cells(x, y, width, height):
            place = (
                f"translate({_number(x)} {_number(y)}) scale({_number(width)} {_number(height)})"
            )
            paths = "".join(_paths(shape.levels))
            return f'<g transform="{place}" shape-rendering="crispEdges">{paths}</g>'


def _letters(text: Text) -> Iterator[str]:
    yield _numbers(x=text.x, y=text.y, font_size=text.size)
    yield _paint("fill", text.colour)
    if text.anchor != "start":
        yield f' text-anchor="{text.anchor}"'
    if text.is_bold:
        yield ' font-weight="bold"'
    if text.is_stacked:
        yield ' writing-mode="vertical-rl"'
    if text.turned:
        place = " ".join(map(_number, (text.turned, text.x, text.y)))
        yield f' transform="rotate({place})"'


def _paths(levels: tuple[tuple[int | None, ...], ...]) -> Iterator[str]:
    """One path for each colour: rows of neighbours, in units of a cell."""
    runs: dict[int, list[str]] = {}
    for row, line in enumerate(levels):
        column = 0
        for level, group in groupby(line):
            length = len(list(group))
            if level is not None:
                runs.setdefault(level, []).append(f"M{column} {row}h{length}v1h-{length}z")
            column += length
    for level, steps in sorted(runs.items()):
        yield f'<path{_paint("fill", f"w{level}")} d="{"".join(steps)}"/>'


def _stroke(shape: Line | Polyline) -> str:
    width = f' stroke-width="{_number(shape.width)}"'
    dash = f' stroke-dasharray="{" ".join(map(_number, shape.dash))}"' if shape.dash else ""
    joined = ' stroke-linejoin="round"' if isinstance(shape, Polyline) else ""
    return f"{_paint('stroke', shape.colour)}{width}{dash}{joined}{_opacity(shape.opacity)}"


def _paint(use: str, colour: str) -> str:
    if values := themed(colour):
        return f' class="{use}-{colour}" {use}="{values[0]}"'
    return f" {use}={quoteattr(colour)}"


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{_number(opacity)}"'


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _numbers(**numbers: float) -> str:
    return " ".join(
        f'{name.replace("_", "-")}="{_number(value)}"' for name, value in numbers.items()
    )


def _number(value: float) -> str:
    return f"{value:z.2f}".rstrip("0").rstrip(".")
