"""The colours of weights: from 0, which is nearly paper, to 1 in equal steps for the eye.

Two ramps, for light and for dark paper. Their stops are equally far apart in OKLab, so that equal
differences of weight look equally large, and their lightness goes one way only, so that they are
told apart without seeing hues. `page/colours.js` has the same.
"""

from regard.view.drawing import DARK, LIGHT

Colour = tuple[int, int, int]

LIGHT_RAMP = (
    "#fbfaf7", "#ecf0d7", "#d3e5c2", "#b7dab6", "#99ceb1", "#7bc1af", "#60b4ae", "#47a5ac",
    "#3495a9", "#2884a4", "#24739e", "#256295", "#265189", "#27407b", "#25316c", "#22215c",
    "#1d124b",
)  # fmt: skip
DARK_RAMP = (
    "#1b1e24", "#21273c", "#273253", "#2a3f68", "#294f79", "#245f87", "#1d7192", "#15829a",
    "#1793a0", "#27a4a3", "#3fb4a3", "#5ac2a1", "#79d09f", "#99dd9d", "#bbe89e", "#dcf1a1",
    "#fbfbab",
)  # fmt: skip

LEVELS = 64  # steps of a ramp in a drawing


def colour_at(weight: float, ramp: tuple[str, ...]) -> Colour:
    """Red, green and blue of a weight from 0 to 1."""
    place = min(max(weight, 0.0), 1.0) * (len(ramp) - 1)
    below = min(int(place), len(ramp) - 2)
    low, high = channels(ramp[below]), channels(ramp[below + 1])
    red, green, blue = (
        round(a + (b - a) * (place - below)) for a, b in zip(low, high, strict=True)
    )
    return red, green, blue


def themed(name: str) -> tuple[str, str] | None:
    """A name's colours on light and on dark paper, or None if it is no name.

    "ink" and the like are the theme's, "w12" is a weight's, "t12" is for text on top of that.
    """
    if name in LIGHT:
        return LIGHT[name], DARK[name]
    if name[:1] not in ("w", "t") or not name[1:].isdecimal():
        return None
    light, dark = (colour_at(int(name[1:]) / LEVELS, ramp) for ramp in (LIGHT_RAMP, DARK_RAMP))
    if name[0] == "t":
        return text_on(light), text_on(dark)
    return hex_of(light), hex_of(dark)


def level_of(weight: float) -> int:
    """The step of a ramp that shows a weight."""
    return round(min(max(weight, 0.0), 1.0) * LEVELS)


def hex_of(colour: Colour) -> str:
    """A colour as #rrggbb."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def text_on(colour: Colour) -> str:
    """Black or white, whichever is better read on a colour."""
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"  # there both have 4.6 to 1


def luminance(colour: Colour) -> float:
    """How much light a colour gives, from 0 to 1, as the rules for readable text count it."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def channels(colour: str) -> Colour:
    """Red, green and blue of #rrggbb."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
