import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import regard.view
from regard.errors import ConfigError
from regard.view.captions import LANGUAGES, words_in
from regard.view.html import MODULES, as_table, html_frame, html_page, in_255ths, packed
from regard.view.matrix import KINDS, Choice, units_of
from regard.view.pieces import as_words

PAGE = Path(regard.view.__file__).parent / "page"


class Parts(HTMLParser):
    """What a browser would find: elements with their attributes, and the text of each script."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts = [], {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements:
            tag, attributes = self.elements[-1]
            self.texts.setdefault(attributes.get("id") or tag, []).append(data)

    def text(self, name):
        return "".join(self.texts[name])


def data_of(page):
    return json.loads(Parts(page).text("data"))


def weights_in(kind, shape):
    """The bytes as an independent reader would take them."""
    data = base64.b64decode(kind["weights"])
    data = zlib.decompress(data) if kind["deflated"] else data
    return np.frombuffer(data, np.uint8).reshape(shape) / 255


def test_the_weights_of_the_file_are_those_of_the_network(attended):
    seen = attended()
    kinds = data_of(html_page(seen))["kinds"]
    assert tuple(kinds) == KINDS
    for kind in KINDS:
        exact = getattr(seen, kind)
        found = weights_in(kinds[kind], exact.shape)
        assert np.abs(found - exact).max() < 1 / 255
        assert found.sum(axis=-1) == pytest.approx(1.0)
        assert not found[exact == 0].any()


def test_129_600_weights_are_168_kilobytes_of_base64():
    """Six layers of eight heads, thirty pieces on both sides, three kinds; JSON has 2.8 MB."""
    weights = np.full((3 * 6, 8, 30, 30), 1 / 30, np.float32)
    assert weights.size == 129_600
    assert len(packed(weights, is_deflated=False)) == 172_800  # 168.75 KiB
    assert len(packed(weights, is_deflated=True)) < 172_800
    rng = np.random.default_rng(0)
    random = rng.dirichlet(np.ones(30), size=(144, 30)).astype(np.float32)
    assert len(json.dumps(random.tolist())) > 2_600_000


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 70)),
                  elements=st.floats(0, 1, width=32))
)  # fmt: skip
def test_rows_of_255ths_keep_their_sum_and_every_weight_its_place(weights):
    weights = weights + 1e-3
    rows = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    found = in_255ths(rows).astype(int)
    assert (found.sum(axis=-1) == 255).all()
    assert np.abs(found - 255 * rows.astype(float)).max() < 1 + 1e-4


def test_words_and_sinks_travel_with_the_pieces(attended):
    seen = attended()
    sides = as_table(seen, is_deflated=False)["sides"]
    _, given = units_of(seen, "decoder", as_words)
    assert sides["given"]["words"]["labels"] == given.labels
    assert sides["given"]["pieces"]["labels"][:2] == ("<s>", "Ma")
    assert sides["src"]["words"]["sizes"] == (2, 1, 1, 1, 1, 1, 1)
    assert sides["src"]["pieces"]["sinks"] == [1, 0, 0, 0, 0, 0, 1, 1]


def test_the_page_asks_for_nothing_and_its_own_rule_forbids_it(attended):
    page = html_page(attended())
    parts = Parts(page)
    for tag, attributes in parts.elements:
        assert not {"src", "href", "srcset", "action", "style"} & attributes.keys(), tag
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.findall(r"url\(|@import|https?://|//cdn", page)
    rule = next(a["content"] for _, a in parts.elements if "http-equiv" in a)
    assert rule.startswith("default-src 'none'; script-src 'sha256-")
    script = page[page.index('<script type="module">') + 22 : page.rindex("</script>")]
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in rule
    assert "unsafe" not in rule


def test_text_stays_text_whatever_it_says(attended):
    evil = "</script><img src=x onerror=alert(1)><!--"
    seen = attended(src=(f"▁{evil}", "</s>"), text=evil)
    page = html_page(seen)
    assert "<img" not in page
    assert data_of(page)["target"] == data_of(page)["source"] == evil
    assert [tag for tag, _ in Parts(page).elements].count("script") == 2


def test_the_page_begins_with_what_was_chosen(attended):
    choice = Choice("encoder", 3, 2, in_words=True, hides_sinks=True)
    data = data_of(html_page(attended(), choice, "zh"))
    assert data["start"] == {"kind": "encoder", "layer": 2, "head": 1, "words": True, "sinks": True}
    assert data["language"] == "zh"
    assert data_of(html_page(attended()))["start"]["layer"] is None


def test_a_layer_that_is_not_there_is_refused_before_the_page_is_written(attended):
    with pytest.raises(ConfigError) as refused:
        html_page(attended(), Choice(layer=7))
    assert str(refused.value) == "there is no layer 7; they count from 1 to 2"


def test_a_network_without_self_attention_has_a_page_of_one_kind(attended):
    seen = replace(attended(), encoder=None, decoder=None)
    assert tuple(data_of(html_page(seen))["kinds"]) == ("cross",)


def test_both_languages_have_the_same_words_with_the_same_holes_and_none_is_empty():
    english, chinese = map(words_in, LANGUAGES)
    assert english.keys() == chinese.keys()
    for name in english:
        assert english[name].strip()
        assert chinese[name].strip()
        holes = [set(re.findall(r"\{\w+\}", words[name])) for words in (english, chinese)]
        assert holes[0] == holes[1], name
    same = {name for name in english if english[name] == chinese[name]}
    assert same == set()


def test_every_word_is_used_and_every_word_that_is_used_is_there():
    sources = [path.read_text(encoding="utf-8") for path in (PAGE.glob("*.js"))]
    sources += [path.read_text(encoding="utf-8") for path in PAGE.parent.glob("*.py")]
    text = "\n".join(sources)
    composed = {
        f"{stem}_{kind}" for stem in ("looks", "keys", "queries", "place") for kind in KINDS
    }
    composed |= {f"{kind}_{end}" for kind in KINDS for end in ("axes", "short")}
    composed |= {f"theme_{name}" for name in ("auto", "light", "dark")}
    composed |= {"in_words_help", "hide_sinks_help"}
    named = set(re.findall(r'"(\w+)"', text)) | composed | set(KINDS)
    assert set(words_in("en")) <= named
    called = set(re.findall(r'said\("(\w+)"', text)) | composed
    assert called <= set(words_in("en"))


def test_every_module_of_the_page_is_in_the_file_behind_those_it_imports():
    assert {path.stem for path in PAGE.glob("*.js")} == set(MODULES)
    for place, name in enumerate(MODULES):
        source = (PAGE / f"{name}.js").read_text(encoding="utf-8")
        imports = re.findall(r'^import .* from "\./(\w+)\.js"', source, re.M)
        assert set(imports) <= set(MODULES[:place]), name
        assert source.count("import ") == len(imports)


def test_modules_are_small_and_know_no_framework():
    sizes = [path.stat().st_size for path in PAGE.iterdir()]
    assert sum(sizes) < 60_000


def test_in_a_notebook_it_is_a_frame_that_can_touch_nothing_around_it(attended):
    seen = attended()
    (tag, attributes), *others = Parts(html_frame(seen)).elements
    assert (tag, others) == ("iframe", [])
    assert attributes["srcdoc"] == html_page(seen)
    assert attributes["sandbox"] == "allow-scripts allow-downloads"
