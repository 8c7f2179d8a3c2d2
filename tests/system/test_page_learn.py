"""Learning on the page: what it computes and shows is what the model and the server say."""

import re
from base64 import b64decode
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

RAIN = "下雨的时候，我喜欢在家看书。"


def test_the_inspector_arrives_at_the_weight_that_pytorch_has(open_served, page_server, thorough):
    attended = thorough.attend(RAIN)
    for kind, layer, head, row, column in (("cross", 3, 2, 4, 3), ("decoder", 2, 1, 6, 4),
                                           ("encoder", 1, 4, 3, 5)):  # fmt: skip
        state = f"kind={kind}&layer={layer}&head={head}&row={row}&column={column}"
        page = open_served(f"mode=learn&step=4&text={quote(RAIN)}&{state}", ready=".verdict")
        own = getattr(attended, kind)[layer - 1, head - 1, row - 1, column - 1]
        values = [float(one.get_attribute("data-value")) for one in page.locator(".value").all()]
        assert abs(values[-1] - own) < 1e-6
        assert page.locator(".verdict").text_content().startswith("✓ equal to the model's")
        asked = {"text": RAIN, "kind": kind, "layer": layer - 1, "head": head - 1, "vectors": True}
        table = page_server.post("/api/v1/attend", asked).json()
        query, key = (floats(table[name]) for name in ("query", "key"))
        product = query[row - 1] @ key[column - 1]
        assert values[:2] == pytest.approx([product, product * table["scale"]], abs=1e-5)
        page.get_by_label("divide by √d").uncheck()
        page.locator(".verdict", has_text="as trained, the weight is").wait_for()
        seen = key[:row] if kind == "decoder" else key
        scores = seen.astype(np.float64) @ query[row - 1]
        unscaled = np.exp(scores - scores.max())
        last = float(page.locator(".value").last.get_attribute("data-value"))
        assert last == pytest.approx((unscaled / unscaled.sum())[column - 1], abs=1e-6)
        page.get_by_label("Temperature").fill(str(1 / table["scale"]))  # what the scale did
        page.locator(".verdict.right", has_text="✓ equal to the model's").wait_for()


def floats(table):
    return np.frombuffer(b64decode(table["float32"]), "<f4").reshape(table["shape"])


def test_embeddings_are_the_model_s_own(page_server, thorough):
    table = page_server.post("/api/v1/embed", {"text": RAIN}).json()
    embedding = thorough._torch.network.source
    expected = embedding.scale * embedding.weight[table["ids"]].detach().float().numpy()
    assert np.array_equal(floats(table["vectors"]), expected)
    assert table["pieces"][-1] == "</s>"


def test_heads_are_walked_through_by_keys_and_the_address_keeps_them(open_served):
    page = open_served("mode=learn&step=7&kind=encoder&layer=1&head=1", ready=".gallery")
    page.get_by_role("radio", name=re.compile("^layer 1, head 1:")).focus()
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    chosen = page.get_by_role("radio", checked=True, name=re.compile("^layer"))
    assert chosen.get_attribute("aria-label").startswith("layer 2, head 2: ")
    assert chosen.evaluate("one => one === document.activeElement")
    page.get_by_role("button", name="3 Query, key, value").click()
    page.get_by_text("The query of").wait_for()
    assert page.get_by_label("Layer").input_value() == "2"
    again = open_served(urlsplit(page.url).fragment)
    again.get_by_text("The query of").wait_for()
    assert again.get_by_label("Head").input_value() == "2"


def test_a_token_is_forced_and_the_search_goes_on_from_there(open_served, page_server):
    page = open_served(f"mode=learn&step=9&text={quote(RAIN)}&beam=3", ready=".node")
    trace = page_server.post("/api/v1/trace", {"text": RAIN, "beam": 3}).json()
    rank, pruned = next((n, one) for n, one in enumerate(trace["steps"][0])
                        if one["fate"] == "pruned" and one["piece"].startswith("▁"))  # fmt: skip
    first = page.locator(".results li").first.text_content()
    assert first.startswith(trace["hypotheses"][0]["text"])
    page.locator(f'[data-node="0-{rank}"]').click()
    word = pruned["piece"].strip("▁")
    page.get_by_role("heading", name=f"“{word}” at step 1").wait_for()
    page.get_by_role("button", name="Force this token").click()
    page.get_by_text(f"If it must begin with “{word}”").wait_for()
    forced = page_server.post("/api/v1/trace", {"text": RAIN, "beam": 3, "prefix": word}).json()
    best = forced["hypotheses"][0]["text"]
    assert best.startswith(word)
    assert page.locator(".results").last.locator("li").first.text_content().startswith(best)
    assert page.locator(".results li").first.text_content() == first


def test_masks_taken_away_let_the_future_in(open_served):
    page = open_served("mode=learn&step=6&pads=3", ready=".verdict")
    assert "weigh exactly 0" in page.locator(".verdict").text_content()
    assert page.locator(".hatched").count() > 3
    page.get_by_label("masks on").uncheck()
    page.locator(".verdict.wrong").wait_for()
    assert "Without masks" in page.locator("[aria-live=polite]").text_content()  # to be heard
    future, padding = map(float, re.findall(r"([\d.]+) %", page.locator(".verdict").text_content()))
    assert future > 5
    assert padding > 0


def rank_correlation(*sides):
    """Spearman's, the slow way: a rank is how many are smaller, and half of the equal ones."""
    ranks = [[(side < x).sum() + ((side == x).sum() - 1) / 2 for x in side] for side in sides]
    return np.corrcoef(ranks)[0, 1]


def test_agreement_with_occlusion_is_spearman_s(open_served, page_server, thorough):
    page = open_served(f"mode=learn&step=10&text={quote(RAIN)}", ready=".agree")
    attended = thorough.attend(RAIN)
    looked = np.rint(attended.cross[-1] * 255).astype(np.uint8).mean(axis=0)
    delta = np.array(page_server.post("/api/v1/occlude", {"text": RAIN}).json()["delta"])
    told = [float(one.replace("−", "-")) for one in page.locator(".agree td").all_text_contents()]
    expected = [rank_correlation(looked[n, :-1], delta[:, n]) for n in range(len(told))]
    assert told == pytest.approx(expected, abs=0.006)
