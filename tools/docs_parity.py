"""Keeps the English and the Chinese documents saying the same.

The pages of docs/en and docs/zh, and README.md and README.zh.md, go in pairs: the same names, as
many headings of each level, the same code blocks to the letter, the words of docs/glossary.toml,
and relative links that lead somewhere. Each page of docs/zh starts by naming the English text it
was made from; a page that has fallen behind is a warning, and a fault with --release. --write says
that the Chinese pages have caught up.
"""

import argparse
import hashlib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent

FENCED = re.compile(r"^ *(?P<fence>`{3,}+|~{3,}+).*?(?:^ *(?P=fence)[`~]* *$|\Z)", re.M | re.S)
INLINE = re.compile(r"`[^`\n]+`")
UNREAD = re.compile(r"<!--.*?-->|<[^>\n]+>|(?<=\])\([^)\n]*\)|^\[[^\]]+\]:[^\n]*", re.M | re.S)
HEADING = re.compile(r"^(#{1,6}) ", re.M)
LINK = re.compile(r"\]\(<?([^)\s>]+)|^\[[^\]]+\]: *(\S+)|(?:href|src)=\"([^\"]+)\"", re.M)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.I)  # a scheme, a host, a place on this page
FOLLOWS = re.compile(r"\A<!-- follows en: ([0-9a-f]{12}) -->\n")


def pair_faults(english: str, chinese: str, terms: dict[str, str]) -> Iterator[str]:
    """Where a Chinese page differs from its English one."""
    ours, theirs = _headings(chinese), _headings(english)
    for level in sorted(ours | theirs):
        if ours[level] != theirs[level]:
            yield f"{ours[level]} headings of level {level}, but {theirs[level]} in English"
    blocks, originals = _code_blocks(chinese), _code_blocks(english)
    if len(blocks) != len(originals):
        yield f"{len(blocks)} code blocks, but {len(originals)} in English"
    for number, (block, original) in enumerate(zip(blocks, originals, strict=False), start=1):
        if block != original:
            yield f"code block {number} is not the English one, letter for letter"
    for term, form in terms.items():
        if says(english, term) and form not in _prose(chinese):
            yield f'{form} is nowhere, though the English page says "{term}"'


def says(page: str, term: str) -> bool:
    """Whether a reader reads the term: whole words, also in the plural, over a line break too."""
    words = r"[\s-]+".join(re.escape(word) for word in term.split())
    return re.search(rf"\b{words}s?\b", _prose(page), re.IGNORECASE) is not None


def lost_links(page: Path, text: str) -> list[str]:
    """The targets of relative links on a page that do not exist."""
    found = LINK.finditer(INLINE.sub("", FENCED.sub("", text)))
    targets = (next(filter(None, link.groups())) for link in found)
    files = (target.split("#")[0] for target in targets if not ELSEWHERE.match(target))
    return [file for file in files if not (page.parent / unquote(file)).exists()]


def digest(english: str) -> str:
    """The name that a Chinese page gives to the English text it follows."""
    return hashlib.sha256(english.encode()).hexdigest()[:12]


def followed(chinese: str) -> str | None:
    """The digest in the first line of a Chinese page."""
    found = FOLLOWS.match(chinese)
    return found[1] if found else None


def following(english: str, chinese: str) -> str:
    """The Chinese page with this English text's digest as its first line."""
    return f"<!-- follows en: {digest(english)} -->\n" + FOLLOWS.sub("", chinese)


def faults_of(root: Path) -> Iterator[str]:
    """All that is wrong with the documents under `root`, as `path: sentence`."""
    terms = tomllib.loads(_read(root / "docs/glossary.toml"))["terms"]
    readmes = (root / "README.md", root / "README.zh.md")
    for pair in (readmes, *_pages(root)):
        for page in filter(Path.exists, pair):
            for target in lost_links(page, _read(page)):
                yield f"{_name(root, page)}: links to {target}, which does not exist"
        if missing := [page for page in pair if not page.exists()]:
            yield from (f"{_name(root, page)}: this page is missing" for page in missing)
            continue
        english, chinese = map(_read, pair)
        name = _name(root, pair[1])
        yield from (f"{name}: {fault}" for fault in pair_faults(english, chinese, terms))
        if pair is not readmes and followed(chinese) is None:
            yield f"{name}: the first line is not <!-- follows en: {digest(english)} -->"


def behind(root: Path) -> list[str]:
    """The Chinese pages that follow an older English text."""
    return [
        f"{_name(root, chinese)}: follows an older English page; read the change, then --write"
        for english, chinese in _pages(root)
        if english.exists() and chinese.exists()
        if followed(_read(chinese)) not in (None, digest(_read(english)))
    ]


def write(root: Path) -> None:
    """Let every Chinese page name the English text as it is now."""
    for english, chinese in _pages(root):
        if english.exists() and chinese.exists():
            chinese.write_text(following(_read(english), _read(chinese)), encoding="utf-8")


def main() -> int:
    """Report every fault at once: 1 if there is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--release", action="store_true", help="a page left behind is a fault")
    parser.add_argument("--write", action="store_true", help="name the English pages as they are")
    options = parser.parse_args()
    if options.write:
        write(ROOT)
    faults, warnings = list(faults_of(ROOT)), behind(ROOT)
    if options.release:
        faults, warnings = faults + warnings, []
    for line in [*(f"warning: {warning}" for warning in warnings), *faults]:
        print(line)
    return int(bool(faults))


def _pages(root: Path) -> list[tuple[Path, Path]]:
    """Each page of docs/en and its like in docs/zh; one of the two may be missing."""
    sides = root / "docs/en", root / "docs/zh"
    names = {page.relative_to(side) for side in sides for page in side.rglob("*.md")}
    return [(sides[0] / name, sides[1] / name) for name in sorted(names)]


def _headings(text: str) -> Counter[int]:
    return Counter(len(found[1]) for found in HEADING.finditer(FENCED.sub("", text)))


def _code_blocks(text: str) -> list[str]:
    """The fenced blocks with their fences, so that the language is compared too."""
    return [found[0].rstrip() for found in FENCED.finditer(text)]


def _prose(text: str) -> str:
    """What a reader reads: no code, no comments, no addresses."""
    return UNREAD.sub("", INLINE.sub("", FENCED.sub("", text)))


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _name(root: Path, page: Path) -> str:
    return page.relative_to(root).as_posix()


if __name__ == "__main__":
    sys.exit(main())
