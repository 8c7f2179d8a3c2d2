"""What the page is used for beside translating: two directions, files, keys, every width."""

import json
import re
import shlex
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

RAIN = "下雨的时候，我喜欢在家看书。"


def both_ways(page, page_server):
    """The server's model as if it also went from English to Chinese, and what it was asked."""
    table = page_server.get("/api/v1/models").json()
    table["models"][0]["directions"] = [{"from": "zh", "to": "en"}, {"from": "en", "to": "zh"}]
    page.route("**/api/v1/models", lambda route: route.fulfill(json=table))
    asked = []

    def answer(route):
        fields = route.request.post_data_json
        asked.append({name: fields.get(name) for name in ("text", "from", "to")})
        source = fields.get("from") or ("en" if fields["text"].isascii() else "zh")
        text = {"zh": "I like tea.", "en": "我喜欢茶。"}[source]
        one = {"text": text, "score": -0.1}
        found = {**one, "from": source, "to": "en" if source == "zh" else "zh", "model": "m",
                 "finished": True, "alternatives": [one]}  # fmt: skip
        route.fulfill(json={"translations": [found]})

    page.route("**/api/v1/translate", answer)
    return asked


def test_a_model_of_both_directions_is_swapped_back_and_forth(open_served, page_server):
    page = open_served()
    asked = both_ways(page, page_server)
    page.reload()
    swap = page.get_by_role("button", name="Swap the languages")
    expect(swap).to_be_disabled()  # nothing is chosen, and nothing written
    page.locator("#source").fill("我喜欢茶。")
    expect(page.locator("#target-text")).to_have_text("I like tea.")
    swap.click()  # both sides are left open, and stay so
    expect(page.locator("#target-text")).to_have_text("我喜欢茶。")
    assert page.locator("#source").input_value() == "I like tea."
    assert asked[-1] == {"text": "I like tea.", "from": None, "to": None}
    page.get_by_label("From", exact=True).select_option("English")
    page.get_by_label("To", exact=True).select_option("Chinese")
    page.locator("#source").fill("")
    swap.click()
    assert page.get_by_label("From", exact=True).input_value() == "Chinese"
    page.locator("#source").fill("我喜欢茶。")
    expect(page.locator("#target-text")).to_have_text("I like tea.")
    assert asked[-1] == {"text": "我喜欢茶。", "from": "zh", "to": "en"}
    sent = []

    def keep(route):
        sent.append(route.request.post_data)
        route.fulfill(json={"translatedFileUrl": "/x"})

    page.route("**/translate_file", keep)
    page.get_by_label("From", exact=True).select_option("Automatic")
    page.get_by_label("To", exact=True).select_option("Automatic")
    page.get_by_text("Translate a file", exact=True).click()
    for text, target in (("I like tea.", "zh"), ("我喜欢茶。", "en")):
        file = {"name": "tea.txt", "mimeType": "text/plain", "buffer": text.encode()}
        with page.expect_request("**/translate_file"):
            page.get_by_label("Choose a file").set_input_files(file)
        page.get_by_text("Save tea.txt, translated").wait_for()
        assert re.search(r'name="target"\s+(\w+)', sent[-1])[1] == target


def test_the_bundled_model_goes_both_ways_and_answers_while_one_types(browser, serve):
    server = serve("--deadline", "60")
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(server.address)
    times = []
    for text in ("我喜", "我喜欢", "我喜欢喝", "我喜欢喝茶。"):
        page.locator("#source").fill(text)
        page.locator("p[role=status]", has_text="Chinese → English").wait_for()
        page.locator(".target:not(.waiting)").wait_for()
        said = page.locator("p[role=status]").first.text_content()
        times.append(int(re.search(r"(\d+) ms", said)[1]))
    assert min(times) < 300, times
    expect(page.locator("#target-text")).to_contain_text("tea")
    page.get_by_role("button", name="Swap the languages").click()
    page.locator("p[role=status]", has_text="English → Chinese").wait_for()
    expect(page.locator("#target-text")).to_contain_text("茶")
    page.get_by_role("radio", name="Learn").click()
    page.get_by_role("button", name="4 Arithmetic").click()
    assert page.locator(".verdict").text_content().startswith("✓ equal to the model's")
    context.close()


def test_a_server_that_wants_a_key_is_given_one(open_served):
    page = open_served()
    page.route("**/api/v1/translate", lambda route: route.fulfill(
        status=403, json={"error": {"code": "key", "message": "no", "message_zh": "不"}})
        if "authorization" not in route.request.headers else route.continue_())  # fmt: skip
    page.locator("#source").fill("我喜欢喝茶。")
    page.get_by_text("This server needs a key").wait_for()
    assert page.locator("#target-text").text_content() == ""
    page.get_by_label("API key").fill("secret")
    page.keyboard.press("Enter")
    expect(page.locator("#target-text")).to_contain_text("tea")
    open_served.faults[:] = [one for one in open_served.faults if "403" not in one]


@pytest.mark.parametrize("width", [320, 768, 2560])
def test_no_step_is_wider_than_the_screen_from_a_phone_to_a_wall(open_served, width):
    page = open_served(f"text={quote(RAIN)}", width=width, language="zh-CN")
    for state in ("mode=work", "mode=training", *(f"mode=learn&step={n}" for n in range(1, 11))):
        page.evaluate("state => { location.hash = state }", f"{state}&text={quote(RAIN)}")
        page.locator(".step-body .card:not(.waiting), .charts, .sheet-card").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == width, state


def test_a_file_dropped_anywhere_is_translated(open_served):
    page = open_served()
    made = page.evaluate_handle(
        "text => { const made = new DataTransfer();"
        "made.items.add(new File([text], 'tea.txt', { type: 'text/plain' })); return made }",
        "我喜欢喝茶。",
    )
    page.dispatch_event("footer", "dragover", {"dataTransfer": made})
    assert page.locator("main.dropping").count() == 1
    page.dispatch_event("footer", "drop", {"dataTransfer": made})
    page.get_by_text("Save tea.txt, translated").wait_for()
    assert page.locator("main.dropping").count() == 0


def test_what_was_written_is_copied(open_served):
    page = open_served(f"text={quote(RAIN)}", ready=".word")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#target-text").text_content()


def test_the_model_that_comes_along_needs_no_name_in_the_code(open_served, page_server):
    page = open_served()
    table = page_server.get("/api/v1/models").json()
    table["models"][0]["name"] = "bundled"
    page.route("**/api/v1/models", lambda route: route.fulfill(json=table))
    page.reload()
    page.get_by_text("Show as code").click()
    assert "regard.load()" in page.locator("pre.code").text_content()
    page.get_by_role("radio", name="regard", exact=True).click()
    assert shlex.split(page.locator("pre.code").text_content()) == ["regard", "translate", ""]
    page.locator("#source").fill("它's")
    page.locator(".word").first.wait_for()
    said = shlex.split(page.locator("pre.code").text_content())
    assert said[:3] == ["regard", "translate", "它's"]
    assert said[said.index("--model") + 1] == "tatoeba-zh-en"  # as the server called it
    page.get_by_role("radio", name="curl").click()
    body = json.loads(shlex.split(page.locator("pre.code").text_content())[-1])
    assert (body["text"], body["from"], body["to"]) == ("它's", "zh", "en")


def test_a_request_given_up_while_its_answer_comes_in_is_no_answer(open_served):
    page = open_served()
    ended = page.evaluate("""async () => {
        const { ask } = await import("/page/api.js");
        const json = () => Promise.reject(new DOMException("", "AbortError"));
        window.fetch = async () => ({ ok: true, json });
        return ask("/api/v1/translate", {}).then(() => "answered", (problem) => problem.name);
    }""")
    assert ended == "AbortError"
