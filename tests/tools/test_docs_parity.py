"""Each rule of tools/docs_parity.py, with a planted fault and without."""

import importlib.util
import re
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "docs_parity.py"
spec = importlib.util.spec_from_file_location("docs_parity", TOOL)
parity = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parity)

ENGLISH = """\
# Masks

Each query has a mask. See [the model](model.md#heads).

## In code

```python
# True means: may attend
mask = causal_mask(3)
```
"""
CHINESE = """\
# 掩码

每个查询有一个掩码。参见[模型](model.md#heads)。

## 代码

```python
# True means: may attend
mask = causal_mask(3)
```
"""
TERMS = {"query": "查询", "mask": "掩码", "residual connection": "残差连接"}


def faults(english: str = ENGLISH, chinese: str = CHINESE) -> list[str]:
    return list(parity.pair_faults(english, chinese, TERMS))


@pytest.fixture
def house(tmp_path):
    """A small set of documents without a fault."""
    files = {
        "README.md": "# regard\n\n[guide](docs/en/masks.md)\n",
        "README.zh.md": "# 顾\n\n[指南](docs/zh/masks.md)\n",
        "docs/glossary.toml": '[terms]\nquery = "查询"\nmask = "掩码"\n',
    }
    for name, english, chinese in (("masks", ENGLISH, CHINESE), ("model", "# Model\n", "# 模型\n")):
        files[f"docs/en/{name}.md"] = english
        files[f"docs/zh/{name}.md"] = parity.following(english, chinese)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(monkeypatch, house, *options) -> int:
    monkeypatch.setattr(parity, "ROOT", house)
    monkeypatch.setattr("sys.argv", ["docs_parity.py", *options])
    return parity.main()


def test_equal_pages_have_no_faults(house):
    assert faults() == []
    assert list(parity.faults_of(house)) == []
    assert parity.behind(house) == []


def test_documents_without_pages_have_no_faults(house):
    for page in house.glob("docs/*/*.md"):
        page.unlink()
    for readme in house.glob("README*"):
        readme.write_text("# regard\n", encoding="utf-8")
    assert list(parity.faults_of(house)) == []


@pytest.mark.parametrize("name", ["docs/zh/model.md", "docs/en/model.md", "README.zh.md"])
def test_a_missing_page_is_named(house, name):
    (house / name).unlink()
    assert f"{name}: this page is missing" in list(parity.faults_of(house))


def test_a_heading_too_many_is_named_by_its_level():
    fault = "2 headings of level 2, but 1 in English"
    assert faults(chinese=CHINESE + "## 附录\n") == [fault]


def test_a_comment_in_code_is_no_heading():
    more = "```bash\n# a comment\n## another\n```\n"
    assert faults(ENGLISH + more + "# End\n", CHINESE + more + "# 终\n") == []


def test_a_missing_code_block_is_counted():
    assert faults(ENGLISH + "~~~\nx\n~~~\n") == ["1 code blocks, but 2 in English"]


@pytest.mark.parametrize(
    ("there", "here"), [("True means: may attend", "True 表示可以注意"), ("```python", "```py")]
)
def test_code_that_differs_is_named(there, here):
    fault = "code block 1 is not the English one, letter for letter"
    assert faults(chinese=CHINESE.replace(there, here)) == [fault]


def test_a_longer_fence_holds_a_shorter_one():
    block = "````markdown\n```\n# not a heading\n```\n````\n"
    assert faults(ENGLISH + block, CHINESE + block) == []
    assert faults(ENGLISH + block, CHINESE) == ["1 code blocks, but 2 in English"]


@pytest.mark.parametrize(
    "said",
    ["Residual connection.", "residual\nconnection", "residual-connection", "residual connections"],
)
def test_a_term_translated_otherwise_is_named(said):
    fault = '残差连接 is nowhere, though the English page says "residual connection"'
    assert faults(ENGLISH + said) == [fault]
    assert faults(ENGLISH + said, CHINESE + "残差连接") == []


@pytest.mark.parametrize(
    "unsaid",
    [
        "residual connectionist",
        "`residual connection`",
        "```\nresidual connection\n```\n",
        "<!-- residual connection -->",
        "[wide](residual-connection.md)",
        '<img src="residual-connection.svg">',
        "[wide]: residual-connection.md",
    ],
)
def test_a_term_counts_only_as_whole_words_in_prose(unsaid):
    assert not any("残差连接" in fault for fault in faults(ENGLISH + unsaid))


def test_a_term_in_chinese_code_is_not_its_translation():
    assert len(faults(chinese=CHINESE.replace("掩码", "遮罩") + "`掩码`")) == 1


@pytest.mark.parametrize(
    "link", ["[a](gone.md)", "![a](<gone.md>)", "[a]: gone.md#part", '<a href="gone.md">a</a>']
)
def test_a_link_that_leads_nowhere_is_named(house, link):
    readme = house / "README.zh.md"
    readme.write_text(f"# 顾\n\n{link}\n", encoding="utf-8")
    fault = "README.zh.md: links to gone.md, which does not exist"
    assert list(parity.faults_of(house)) == [fault]


@pytest.mark.parametrize(
    "link",
    [
        "[a](https://example.org/x)",
        "[a](#part)",
        "[a](docs/en/)",
        "`[a](gone.md)`",
        "[a](my%20file)",
    ],
)
def test_other_links_are_let_be(house, link):
    (house / "my file").touch()
    assert parity.lost_links(house / "README.md", link) == []


def test_a_chinese_page_that_names_no_english_one_is_a_fault(house):
    (house / "docs/zh/model.md").write_text("# 模型\n", encoding="utf-8")
    (fault,) = parity.faults_of(house)
    first_line = r"<!-- follows en: [0-9a-f]{12} -->"
    assert re.fullmatch(rf"docs/zh/model\.md: the first line is not {first_line}", fault)


def test_a_page_left_behind_is_a_warning_and_fails_a_release(house, monkeypatch, capsys):
    (house / "docs/en/model.md").write_text("# Model\n\nMore.\n", encoding="utf-8")
    behind = "docs/zh/model.md: follows an older English page; read the change, then --write\n"
    assert run(monkeypatch, house) == 0
    assert capsys.readouterr().out == f"warning: {behind}"
    assert run(monkeypatch, house, "--release") == 1
    assert capsys.readouterr().out == behind


def test_write_brings_the_first_lines_up_to_date_and_changes_nothing_else(house, monkeypatch):
    english = "# Model\n\nMore.\n"
    (house / "docs/en/model.md").write_text(english, encoding="utf-8")
    (house / "docs/zh/masks.md").write_text(CHINESE, encoding="utf-8")  # with no first line
    assert run(monkeypatch, house, "--write", "--release") == 0
    for name, original, rest in (("masks", ENGLISH, CHINESE), ("model", english, "# 模型\n")):
        page = (house / f"docs/zh/{name}.md").read_text(encoding="utf-8")
        assert page == f"<!-- follows en: {parity.digest(original)} -->\n{rest}"


def test_the_digest_is_the_start_of_the_sha256():
    assert parity.digest("abc") == "ba7816bf8f01"  # the standard's own example


def test_every_term_of_the_glossary_has_one_form_in_chinese_script():
    text = (TOOL.parents[1] / "docs" / "glossary.toml").read_text(encoding="utf-8")
    terms = parity.tomllib.loads(text)["terms"]
    assert all(re.fullmatch(r"[a-z -]+", term) for term in terms)
    assert all(re.fullmatch(r"[\u4e00-\u9fff]+", form) for form in terms.values())
