"""The page of `regard attend --html`, in a browser, from a file and without a network."""

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from regard.cli.main import main
from regard.decode.results import Attention
from regard.decode.translator import load
from regard.view.captions import words_in
from regard.view.colours import DARK_RAMP, LIGHT_RAMP, colour_at
from regard.view.html import html_frame, html_page
from regard.view.matrix import Choice, matrix_of

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
LONG = (
    "机器学习是人工智能的一个分支，它让计算机从数据里学习，而不用人把每一条规则都写下来；"
    "今天我们用它翻译文章、听懂说话、认出图片，明天也许还会用它做更多的事情。"
)
TARGET = (
    "Machine learning is a branch of artificial intelligence: it lets a computer learn from data, "
    "so that nobody has to write down every rule, and we use it to translate books and very good "
    "recipes."
)
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
                                               "wcag22aa", "best-practice"]}}  # fmt: skip


@pytest.fixture(scope="module")
def attended():
    """A real translation, with a source that has punctuation and words of several pieces."""
    return load(TATOEBA).attend(
        "机器学习是一个分支，很好。", "Machine learning is a branch, and good."
    )


@pytest.fixture(scope="module")
def file(attended, tmp_path_factory):
    return written(tmp_path_factory.mktemp("page"), html_page(attended))


def written(folder, page):
    path = folder / "attend.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def open_page(browser):
    """A function that opens an address; whatever the page asks for or complains of is a fault."""
    contexts, faults = [], []

    def opened(address, *, width=1280, theme="light", motion="no-preference"):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            reduced_motion=motion,
            locale="en-US",
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url))
        page.goto(address)
        page.locator(".chip").first.wait_for()
        document = address.partition("#")[0]
        assert [url for url in faults if url.partition("#")[0] != document] == []
        faults.clear()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def cell(page):
    return page.get_by_role("gridcell").get_attribute("aria-label")


def spoken(page):
    return page.locator("[aria-live]").text_content()


def cells_of(page):
    """The whole table, which is there for those who cannot see the matrix."""
    page.locator("details").first.evaluate("one => { one.open = true }")
    page.locator("tbody tr").first.wait_for()
    heads = page.locator("thead th").all_text_contents()
    rows = page.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    return heads, [row[0] for row in rows], [[float(x or 0) for x in row[1:]] for row in rows]


def test_a_page_of_sixty_tokens_is_small_and_opens_without_a_request(open_page, tmp_path, capsys):
    path = tmp_path / "long.html"
    with pytest.raises(SystemExit):
        main(["attend", LONG, "--target", TARGET, "--model", str(TATOEBA), "--html", str(path)])
    assert capsys.readouterr().out == f"{path}\n"
    page = open_page(path.as_uri())
    n_rows, n_columns = (
        int(page.get_by_role("grid").get_attribute(f"aria-{name}count")) for name in ("row", "col")
    )
    assert min(n_rows, n_columns) >= 60
    assert path.stat().st_size < 400_000
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("zh", 320)])
def test_axe_finds_nothing_wrong(open_page, attended, tmp_path, theme, language, width):
    from axe_playwright_python.sync_playwright import Axe

    address = written(tmp_path, html_page(attended, Choice("decoder", hides_sinks=True), language))
    page = open_page(address, width=width, theme=theme)
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true }")
    found = Axe().run(page, options=RULES)
    assert [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]] == []


@pytest.mark.parametrize("choice", [
    Choice(), Choice("encoder", 1, 2), Choice("decoder", 2, 3, in_words=True),
    Choice("cross", 3, 1, in_words=True, hides_sinks=True), Choice("encoder", hides_sinks=True),
])  # fmt: skip
def test_the_browser_shows_the_weights_that_python_shows(open_page, attended, tmp_path, choice):
    page = open_page(written(tmp_path, html_page(attended, choice)))
    keys, queries, weights = cells_of(page)
    matrix = matrix_of(attended, choice)
    assert (tuple(keys), tuple(queries)) == (matrix.keys, matrix.queries)
    off = 0.0006 + 4 / 255 * (5 if choice.in_words else 0.25)
    assert np.abs(np.array(weights) - matrix.weights).max() < off
    if choice.hides_sinks:
        shares = sum(share for _, share in matrix.hidden)
        said = page.locator("p[role=status]").text_content()
        assert abs(int(re.match(r"(\d+) % of the attention is on", said)[1]) - 100 * shares) < 1.5
        assert "</s>" in said


def test_one_tab_stop_arrows_and_letters_are_all_that_is_needed(open_page, file, attended):
    page = open_page(file)
    assert page.locator(".sheet [tabindex='0']").count() == 1
    page.get_by_role("grid").focus()
    matrix = matrix_of(attended)
    most = int(np.argmax(matrix.weights[0]))
    assert cell(page).startswith(f"{matrix.queries[0]} → {matrix.keys[most]} ")
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    assert cell(page).startswith(f"{matrix.queries[0]} → {matrix.keys[1]} ")
    page.keyboard.press("End")
    assert cell(page).startswith(f"{matrix.queries[0]} → {matrix.keys[-1]} ")
    titles = []
    for key in ("l", "Shift+L", "h", "Shift+H", "k", "w", "s"):
        page.keyboard.press(key)
        titles.append(page.locator("h2").first.text_content())
    assert titles[:5] == [
        "cross-attention, layer 1 of 3, mean of 4 heads",
        "cross-attention, layer 3 of 3, mean of 4 heads",
        "cross-attention, layer 3 of 3, head 1 of 4",
        "cross-attention, layer 3 of 3, mean of 4 heads",
        "encoder self-attention, layer 3 of 3, mean of 4 heads",
    ]
    assert page.get_by_label("Words", exact=True).is_checked()
    assert page.get_by_label("Hide sinks").is_checked()
    page.keyboard.press("?")
    assert page.locator("kbd").first.is_visible()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "grid"


def test_a_step_is_said_with_the_words_it_looks_at_most(open_page, file, attended, tmp_path):
    matrix = matrix_of(attended)
    row = 3
    first, weight = matrix.strongest(row)[0]
    page = open_page(file)
    page.get_by_role("slider").fill(str(row + 1))
    found = re.fullmatch(r"Step 4, “(.+)”, looks mostly at (\S+) (\d\.\d\d).*\.", spoken(page))
    assert found[1] == matrix.queries[row]
    assert found[2] == first
    assert abs(float(found[3]) - weight) < 0.01
    chinese = open_page(written(tmp_path, html_page(attended, Choice(), "zh")))
    chinese.get_by_role("button", name="下一步").click()
    assert spoken(chinese).startswith(f"第2步“{matrix.queries[1]}”主要看")


def test_pointing_at_a_token_shows_it_and_leaving_it_shows_what_was_chosen(
    open_page, file, attended
):
    page = open_page(file)
    before = spoken(page)
    matrix = matrix_of(attended)
    source = page.locator(".side").first.locator(".chip").nth(1)
    source.hover()
    assert spoken(page).startswith(f"“{matrix.keys[1]}” is looked at most by ")
    page.locator(".side").last.locator(".chip").nth(2).hover()
    assert spoken(page).startswith(f"Step 3, “{matrix.queries[2]}”, looks mostly at ")
    page.mouse.move(1, 1)
    assert spoken(page) == before
    grid = page.get_by_role("grid")
    size = float(page.get_by_role("gridcell").evaluate("one => one.offsetWidth"))
    grid.hover(position={"x": 2.5 * size, "y": 4.5 * size})
    assert cell(page).startswith(f"{matrix.queries[4]} → {matrix.keys[2]} ")
    grid.click(position={"x": 2.5 * size, "y": 4.5 * size})
    page.mouse.move(1, 1)
    assert cell(page).startswith(f"{matrix.queries[4]} → {matrix.keys[2]} ")


def test_a_thumbnail_chooses_layer_and_head(open_page, file):
    page = open_page(file)
    page.get_by_role("radio", name="layer 2, head 3").click()
    assert page.locator("h2").first.text_content() == "cross-attention, layer 2 of 3, head 3 of 4"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert page.locator("h2").first.text_content() == "cross-attention, layer 1 of 3, head 4 of 4"
    assert page.get_by_role("combobox", name="Layer").input_value() == "1"
    assert page.locator(".thumbnail[tabindex='0']").count() == 1


@pytest.mark.parametrize(("theme", "ramp"), [("light", LIGHT_RAMP), ("dark", DARK_RAMP)])
def test_cells_have_the_colours_of_the_theme_that_was_chosen(
    open_page, file, attended, theme, ramp
):
    page = open_page(file, theme="dark" if theme == "light" else "light")
    page.get_by_role("radio", name=theme.capitalize()).click()
    _, _, weights = cells_of(page)
    places = [(1, 2), (5, 1), (6, 4)]
    colours = page.evaluate(
        "places => { const one = document.querySelector('.paper canvas');"
        "const size = document.querySelector('.cell').offsetWidth * one.width / one.offsetWidth;"
        "const { data } = one.getContext('2d').getImageData(0, 0, one.width, one.height);"
        "return places.map(([row, column]) => { const at = 4 * (one.width *"
        "Math.floor((row + 0.15) * size) + Math.floor((column + 0.15) * size));"
        "return [...data.slice(at, at + 3)] }) }",
        places,
    )
    for (row, column), colour in zip(places, colours, strict=True):
        expected = colour_at(weights[row][column], ramp)
        assert np.abs(np.array(colour) - expected).max() <= 2


def test_every_word_changes_with_the_language(open_page, file):
    page = open_page(file)
    page.get_by_role("radio", name="中文").click()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    shown = page.locator("body").inner_text()
    for name in ("hide_sinks", "in_words", "heads", "table", "keyboard", "cross_axes", "exact"):
        assert words_in("zh")[name] in shown
        assert words_in("en")[name] not in shown
    page.get_by_role("radio", name="English").click()
    assert words_in("en")["cross_axes"] in page.locator("body").inner_text()


@pytest.mark.parametrize("width", [320, 360, 768])
def test_on_a_narrow_screen_nothing_but_the_matrix_itself_scrolls_sideways(open_page, file, width):
    page = open_page(file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    buttons = page.locator(".controls button, .controls select, .stepper button").all()
    assert all(one.bounding_box()["height"] >= 36 for one in buttons)


def test_text_that_looks_like_html_stays_text(open_page, attended, tmp_path):
    evil = "<img/src=x/onerror=document.title='gone'></script>"
    pieces = (f"▁{evil}", *attended.src_pieces[1:])
    seen = replace(attended, src_pieces=pieces, text=evil)
    page = open_page(written(tmp_path, html_page(seen)))
    assert evil in page.locator("h1").text_content()
    assert page.locator("#target").text_content() == evil
    assert page.locator("img").count() == 0
    assert "gone" not in page.title()[:4]


def test_the_address_says_what_is_shown_and_opens_it_again(open_page, file):
    page = open_page(file)
    page.get_by_role("radio", name="Decoder").click()
    page.get_by_label("Words", exact=True).check()
    page.get_by_role("slider").fill("3")
    title, said, address = page.locator("h2").first.text_content(), spoken(page), page.url
    again = open_page(address)
    assert (again.locator("h2").first.text_content(), spoken(again)) == (title, said)
    assert "decoder" in title
    broken = open_page(f"{file}#kind={quote('<nothing>')}&layer=99&head=-4&row=1e9")
    title = "cross-attention, layer 3 of 3, mean of 4 heads"
    assert broken.locator("h2").first.text_content() == title


def test_what_cannot_be_seen_is_said_and_not_shown_as_nought(open_page, attended, tmp_path):
    page = open_page(written(tmp_path, html_page(attended, Choice("decoder"))))
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    assert cell(page).endswith("not yet written")


def test_the_table_is_saved_as_a_file_for_spreadsheets(open_page, file, attended):
    page = open_page(file)
    page.locator("details").first.evaluate("one => { one.open = true }")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    lines = Path(saved.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert saved.value.suggested_filename == "cross-3-mean.csv"
    assert len(lines) == 1 + len(attended.tgt_pieces)
    assert lines[0].startswith('"","␣","机器"')


def test_nothing_moves_for_those_who_asked_for_that(open_page, file):
    still = open_page(file, motion="reduce")
    moving = open_page(file)
    style = "getComputedStyle(document.querySelector('.chip')).transitionDuration"
    assert still.evaluate(style) in ("0s", "")
    assert moving.evaluate(style) == "0.12s"


def test_a_result_shows_itself_in_a_notebook(browser, attended):
    assert isinstance(attended, Attention)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_content(f"<!doctype html><body>{attended._repr_html_()}</body>")
    frame = page.frame_locator("iframe")
    frame.locator(".chip").first.wait_for()
    frame.get_by_role("radio", name="Encoder").click()
    assert frame.locator("h2").first.text_content().startswith("encoder self-attention")
    assert attended._repr_html_() == html_frame(attended)
    context.close()
