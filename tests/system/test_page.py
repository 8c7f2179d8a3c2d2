"""The page that `regard serve` shows, in a browser; a request to another host is a fault."""

import csv
import json
import re
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
TATOEBA = ROOT / "tests" / "models" / "tatoeba-zh-en"
PAGE, VIEW = (ROOT / "src" / "regard" / room / "page" for room in ("serve", "view"))
RAIN = "下雨的时候，我喜欢在家看书。"
STEPS = ("tokens", "positions", "qkv", "arithmetic", "scoring", "masks", "heads", "cross", "beam",
         "occlusion")  # fmt: skip
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
                                               "wcag22aa", "best-practice"]}}  # fmt: skip
EVIL = "<img src=x onerror=document.title='gone'></script>"


def shown(page):
    return page.locator("#target-text").text_content()


def translated(page, text):
    """Types a text, and waits until its links are there."""
    page.locator("#source").fill(text)
    page.locator(".rail svg").wait_for()


def test_a_text_is_translated_while_it_is_typed_and_its_words_are_linked(
    open_served, page_server, thorough
):
    page = open_served()
    translated(page, RAIN)
    fields = {"text": RAIN, "nbest": 4, "beam": 5, "alignments": True}
    [own] = page_server.post("/api/v1/translate", fields).json()["translations"]
    assert shown(page) == own["text"]
    others = page.locator(".others").first.locator("button").all_text_contents()
    assert others == [one["text"] for one in own["alternatives"]]
    alignment = own["alternatives"][0]["alignment"]
    place = alignment["tgt_pieces"].index("▁home")
    sources = [alignment["src_pieces"][s] for s, t in alignment["links"] if t == place]
    page.locator(".word", has_text="home").hover()
    said = page.locator(".card .spoken").text_content()
    assert said.startswith(f"“home” comes from {', '.join(sources)}.")
    page.locator(".others").first.locator("button").nth(1).click()
    assert shown(page) == own["alternatives"][1]["text"]
    page.locator(".rail").focus()
    page.keyboard.press("ArrowRight")
    assert "comes from" in page.locator(".rail").get_attribute("aria-valuetext")


def test_terms_history_code_and_files_are_at_hand(open_served, tmp_path):
    page = open_served()
    page.get_by_text("Terms", exact=True).click()
    page.get_by_role("button", name="Add a term").click()
    page.get_by_label("in the source 1").fill("看书")
    page.get_by_label("in the translation 1").fill("browse")
    page.keyboard.press("Tab")
    translated(page, RAIN)
    assert "browse" in shown(page)
    page.get_by_text("Show as code").click()
    code = page.locator("pre.code")
    assert f'translator.translate("{RAIN}"' in code.text_content()
    assert 'terms={"看书": "browse"}' in code.text_content()
    compile(code.text_content(), "shown", "exec")
    page.get_by_role("radio", name="curl").click()
    assert json.loads(re.search(r"-d '(.*)'", code.text_content())[1])["text"] == RAIN
    page.get_by_text("History", exact=True).click()
    page.locator("#source").fill("")
    page.locator(".other", has_text=RAIN).click()
    assert page.locator("#source").input_value() == RAIN
    file = tmp_path / "tea.txt"
    file.write_text(f"{RAIN}\n")
    page.get_by_text("Translate a file").click()
    page.get_by_label("Choose a file").set_input_files(file)
    with page.expect_download() as saved:
        page.get_by_text("Save tea.txt, translated").click()
    assert "rain" in Path(saved.value.path()).read_text()


def test_markup_stays_text_in_source_terms_and_output(open_served):
    page = open_served(f"from=zh&text={quote(EVIL + '我')}")
    made = {"text": EVIL, "score": -0.1, "finished": True}
    answer = {**made, "from": "zh", "to": "en", "model": EVIL, "alternatives": [made, made]}
    page.route("**/api/v1/translate", lambda route: route.fulfill(
        json={"translations": [answer], "ms": 1}))  # fmt: skip
    page.evaluate("localStorage.setItem('regard-terms', '[[\"<b>x\", \"y\"]]')")
    page.locator("#source").fill(f"{EVIL}你")
    expect(page.locator("#target-text")).to_have_text(EVIL)
    page.unroute("**/api/v1/translate")
    page.reload()
    assert page.get_by_label("in the source 1").input_value() == "<b>x"
    page.get_by_role("radio", name="Learn").click()
    page.locator("#lesson-text").fill(f"{EVIL}你好")
    page.keyboard.press("Enter")
    page.locator(".chip").first.wait_for()
    assert page.locator("img").count() == 0
    assert page.title().startswith("regard")


def test_a_megabyte_is_taken_and_nothing_is_sent_before_one_says_what(open_served):
    page, sent = open_served(), []
    made = {"text": "rain", "score": -0.1, "finished": True}
    answer = {**made, "from": "zh", "to": "en", "model": "m", "alternatives": [made]}

    def answered(route):
        sent.append(route.request.post_data_json["text"])
        route.fulfill(json={"translations": [answer], "ms": 1})

    page.route("**/api/v1/translate", answered)
    page.evaluate(
        "text => { const one = document.querySelector('#source'); one.value = text;"
        "one.dispatchEvent(new Event('input')) }",
        "下雨。" * 350_000,
    )
    assert "1,050,000 characters" in page.get_by_role("alert").text_content()
    assert len(page.url) < 1000
    assert sent == []
    page.get_by_role("button", name="Translate the beginning").click()
    expect(page.locator("#target-text")).to_have_text("rain")
    assert [len(text) for text in sent] == [5000]


def test_a_server_that_is_gone_or_busy_is_said_and_waited_for(open_served, page_server):
    page = open_served()
    page.route("**/api/v1/translate", lambda route: route.fulfill(
        status=429, headers={"retry-after": "1"}, json={"error": {
            "code": "rate", "message": "<b>slow", "message_zh": "慢"}}))  # fmt: skip
    page.locator("#source").fill(RAIN)
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "Trying again in 1 s" in alert.text_content()
    assert "<b>slow" in alert.text_content()
    page.unroute("**/api/v1/translate")
    page.locator(".word, .target:not(.waiting) >> text=rain").first.wait_for()
    page.context.set_offline(True)
    page.locator("#source").fill("我喜欢喝茶。")
    page.get_by_text("The server does not answer").wait_for()
    page.context.set_offline(False)
    expect(page.locator("#target-text")).to_contain_text("tea")
    assert page.get_by_role("alert").count() == 0
    open_served.faults[:] = [one for one in open_served.faults if "Failed to load" not in one]


def test_without_scripts_the_form_translates(open_served):
    page = open_served(scripts=False)
    page.locator("#text").fill("我喜欢喝茶。")
    page.get_by_role("button").click()
    assert "tea" in page.locator("output").text_content()


def test_curves_samples_and_snapshots_of_a_run_are_shown(open_served):
    page = open_served("mode=training")
    assert page.locator(".curve").count() >= 4
    assert "at update 400" in page.locator("p[role=status]").text_content()
    assert "rain 400" in page.locator(".quote").text_content()
    page.get_by_label("Update").first.fill("0")
    assert "rain 200" in page.locator(".quote").text_content()
    page.get_by_text("See the diagonal being born").wait_for()
    slider = page.get_by_label("Update").last
    assert slider.get_attribute("aria-valuetext") == "400"
    slider.fill("0")
    expect(page.get_by_label("Update").last).to_have_attribute("aria-valuetext", "200")


def test_a_view_is_saved_as_html_svg_and_csv_that_need_nothing_else(open_served, browser, tmp_path):
    page = open_served(f"mode=learn&step=4&text={quote(RAIN)}&row=2", ready=".verdict")
    page.get_by_text("Export this view").click()
    files = {}
    for kind in ("HTML", "SVG", "CSV"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=kind, exact=True).click()
        files[kind] = tmp_path / saved.value.suggested_filename
        saved.value.save_as(files[kind])
    rows = list(csv.reader(files["CSV"].read_text(encoding="utf-8-sig").splitlines()))
    assert rows[0] == ["dimension", "q", "k", "q·k", "sum"]
    assert float(rows[-1][4]) == pytest.approx(sum(float(r[1]) * float(r[2]) for r in rows[1:]))
    assert ElementTree.parse(files["SVG"]).getroot().tag.endswith("svg")
    context = browser.new_context(offline=True)
    alone, asked = context.new_page(), []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(files["HTML"].as_uri())
    assert alone.locator(".verdict").text_content() == page.locator(".verdict").text_content()
    assert alone.locator("svg.figure").count() == page.locator("svg.figure").count()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_language_and_theme_are_changed_and_remembered(open_served):
    page = open_served("mode=learn&step=4", ready=".verdict")
    page.get_by_role("radio", name="中文").click()
    page.get_by_text("一个格子，当面算给您看").wait_for()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("radio", name="深色").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.reload()
    page.get_by_text("一个格子，当面算给您看").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize(("theme", "language", "width", "steps"), [
    ("light", "en-US", 1280, (1, 4, 7)), ("dark", "zh-CN", 1280, (2, 5, 8)),
    ("light", "zh-CN", 320, (3, 6, 9)), ("dark", "en-US", 320, (10, 4)),
])  # fmt: skip
def test_axe_finds_nothing_wrong(open_served, theme, language, width, steps):
    from axe_playwright_python.sync_playwright import Axe

    page = open_served(f"text={quote(RAIN)}", theme=theme, language=language, width=width)
    page.locator(".rail svg").wait_for()
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true }")
    found = {}
    for state in ("", "mode=training", *(f"mode=learn&step={step}" for step in steps)):
        if state:
            page.evaluate("state => { location.hash = state }", state)
            page.locator(".step-body .card:not(.waiting), .charts").first.wait_for()
        found[state] = [
            (one["id"], one["nodes"][0]["html"][:200])
            for one in Axe().run(page, options=RULES).response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert page.evaluate("document.documentElement.scrollWidth") == width, state
    assert {state: faults for state, faults in found.items() if faults} == {}


def dictionary(folder, language):
    return json.loads((folder / f"text.{language}.json").read_text(encoding="utf-8"))


def test_both_languages_say_the_same_things_and_leave_nothing_empty():
    english, chinese = dictionary(PAGE, "en"), dictionary(PAGE, "zh")
    assert list(english) == list(chinese)
    assert not set(english) & set(dictionary(VIEW, "en"))  # one page speaks from both
    for lessons in (english.pop("lessons"), chinese.pop("lessons")):
        assert tuple(lessons) == STEPS
        assert [len(list(filter(str.strip, texts))) for texts in lessons.values()] == [5] * 10
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(PAGE.rglob("*.js")))
    for name, text in english.items():
        assert text.strip(), name
        assert chinese[name].strip(), name
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[name]))
        made = name.partition("_")[0] in ("score", "chart", "series", "head", "fate", "agree")
        assert made or f'"{name}"' in source or name.endswith(("_title", "_help")), name
    known = {*english, *dictionary(VIEW, "en")}
    assert set(re.findall(r'said\(\s*"(\w+)"', source)) <= known


def test_the_page_is_light_and_answers_at_once(open_served, capsys):
    own = sum(path.stat().st_size for path in PAGE.rglob("*") if path.is_file())
    page = open_served(ready="#source")

    def loaded(size):
        return page.evaluate(
            "size => performance.getEntriesByType('resource').filter(one => "
            "/page\\//.test(one.name)).reduce((sum, one) => sum + one[size], 0)", size)  # fmt: skip

    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    first = {size: loaded(size) for size in ("transferSize", "decodedBodySize")}
    times = []
    for end in range(4, 9):
        page.locator("#source").fill(RAIN[:end])
        page.locator(".target:not(.waiting)").wait_for()
        times.append(
            int(re.search(r"(\d+) ms", page.locator("p[role=status]").first.text_content())[1])
        )
    for step in range(1, 11):
        page.evaluate("state => { location.hash = state }", f"mode=learn&step={step}")
        title = dictionary(PAGE, "en")["lessons"][STEPS[step - 1]][1]
        page.locator("h2", has_text=title).wait_for()
        page.locator(".step-body .card").first.wait_for()
    whole = {size: loaded(size) for size in first}
    with capsys.disabled():
        print(  # noqa: T201 (how heavy the page is belongs into every log)
            f"\npage: {own / 1000:.1f} KB of its own files; with the panel of attention a reader "
            f"of one language loads {first['decodedBodySize'] / 1000:.0f} KB to begin with "
            f"({first['transferSize'] / 1000:.0f} KB over the wire) and "
            f"{whole['decodedBodySize'] / 1000:.0f} KB ({whole['transferSize'] / 1000:.0f} KB) "
            f"with every step; first paint {paint:.0f} ms, a keystroke {min(times)} ms"
        )
    assert own <= 150_000
    assert first["decodedBodySize"] <= 150_000
    assert whole["transferSize"] <= 150_000
    assert paint < 1000
    assert min(times) < 300


def test_the_guide_is_where_the_steps_say_and_files_are_the_same_deflated(page_server):
    learn = (PAGE / "learn.js").read_text(encoding="utf-8")
    steps = dict(re.findall(r'\["(\w+)", "(\w+)"\]', learn.partition("const SIDES")[0]))
    assert tuple(steps) == STEPS
    for language in ("en", "zh"):
        for name in set(steps.values()):
            answer = page_server.get(f"/guide/{language}/{name}.md")
            assert answer.text == (ROOT / "docs" / language / f"{name}.md").read_text("utf-8")
    assert page_server.get("/guide/en/..%2f..%2fpyproject.toml").status_code == 404
    plain, deflated = (
        page_server.get("/page/app.js", headers={"accept-encoding": coding})
        for coding in ("identity", "gzip")
    )
    assert (plain.headers.get("content-encoding"), deflated.headers["content-encoding"]) == (
        None,
        "gzip",
    )
    assert plain.content == deflated.content == (PAGE / "app.js").read_bytes()
