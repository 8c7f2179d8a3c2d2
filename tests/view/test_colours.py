import math
import re
from itertools import pairwise
from pathlib import Path

import pytest

import regard.view
from regard.view.colours import (
    DARK_RAMP,
    LEVELS,
    LIGHT_RAMP,
    channels,
    colour_at,
    level_of,
    luminance,
    text_on,
    themed,
)
from regard.view.drawing import DARK, LIGHT

RAMPS = pytest.mark.parametrize("ramp", [LIGHT_RAMP, DARK_RAMP], ids=["light", "dark"])


def oklab(colour):
    """Ottosson's formulas, from linear light."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in colour)
    )
    long = 0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue
    medium = 0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue
    short = 0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue
    roots = [value ** (1 / 3) for value in (long, medium, short)]
    rows = (
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    )
    return tuple(sum(a * b for a, b in zip(row, roots, strict=True)) for row in rows)


@RAMPS
def test_equal_steps_of_weight_are_equal_steps_for_the_eye(ramp):
    places = [oklab(colour_at(n / 32, ramp)) for n in range(33)]
    steps = [math.dist(a, b) for a, b in pairwise(places)]
    assert max(steps) / min(steps) < 1.35


@RAMPS
def test_lightness_goes_one_way_so_that_no_hue_need_be_seen(ramp):
    lights = [oklab(colour_at(n / 64, ramp))[0] for n in range(65)]
    steps = [b - a for a, b in pairwise(lights)]
    assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
    assert abs(lights[-1] - lights[0]) > 0.7


@RAMPS
def test_text_on_any_colour_of_a_ramp_has_a_contrast_of_four_and_a_half(ramp):
    for n in range(101):
        colour = colour_at(n / 100, ramp)
        light, dark = sorted(
            (luminance(colour), luminance(channels(text_on(colour)))), reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize(("theme", "paper"), [(LIGHT, "#ffffff"), (DARK, "#14171b")])
def test_ink_and_muted_text_are_readable_on_their_paper(theme, paper):
    for name in ("ink", "muted"):
        light, dark = sorted(
            (luminance(channels(theme[name])), luminance(channels(paper))), reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_ends_of_a_ramp_are_its_ends_and_weights_beyond_are_kept_within():
    assert colour_at(0, LIGHT_RAMP) == colour_at(-1, LIGHT_RAMP) == channels(LIGHT_RAMP[0])
    assert colour_at(1, LIGHT_RAMP) == colour_at(1.0001, LIGHT_RAMP) == channels(LIGHT_RAMP[-1])
    assert colour_at(0.5, LIGHT_RAMP) == channels(LIGHT_RAMP[8])
    assert [level_of(weight) for weight in (-0.1, 0, 0.5, 1, 1.1)] == [0, 0, 32, 64, 64]


def test_names_have_a_colour_on_light_and_on_dark_paper():
    assert themed("ink") == (LIGHT["ink"], DARK["ink"])
    assert themed(f"w{LEVELS}") == (LIGHT_RAMP[-1], DARK_RAMP[-1])
    assert themed("t0") == ("#000000", "#ffffff")
    assert themed("t64") == ("#ffffff", "#000000")
    assert [themed(name) for name in ("#0072B2", "white", "tan", "")] == [None] * 4


def test_the_page_has_the_same_ramps():
    page = Path(regard.view.__file__).parent / "page" / "colours.js"
    found = re.findall(r"#[0-9a-f]{6}", page.read_text(encoding="utf-8"))
    assert tuple(found) == LIGHT_RAMP + DARK_RAMP
