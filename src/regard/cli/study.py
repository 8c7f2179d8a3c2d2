"""`regard study`: the notes' claims, run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.language import language
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.study.claim import Finding
    from regard.study.conduct import Conducted

WORDS = {
    "en": {
        "line": "{name}  {verdict}  {claim}  [{note}] {number} ({relation} {bound}), "
        "control {control}",
        "done": "{name}: {seconds:.1f} s{place}",
        "written": ", written to {place}",
        "beyond": "beyond the notes",
        "note": "note {note}",
        "at least": "at least",
        "at most": "at most",
        "failed": "{name}: {error}",
    },
    "zh": {
        "line": "{name}  {verdict}  {claim}  [{note}] {number}（{relation}{bound}），对照{control}",
        "done": "{name}：{seconds:.1f}秒{place}",
        "written": "，写入{place}",
        "beyond": "笔记之外",
        "note": "笔记{note}",
        "at least": "至少",
        "at most": "至多",
        "failed": "{name}：{error}",
    },
}


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "wants_all", is_flag=True, help="Every experiment, in about 5 minutes.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Of everything that is drawn.")  # fmt: skip
@click.option("--quick", is_flag=True,
              help="A form of seconds; nothing is written unless --out says where.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Where results go; without it, experiments.")  # fmt: skip
@click.option("--model", type=click.Path(path_type=Path), metavar="DIR",
              help="What e12, e13 and e14 look into; without it, the bundled model.")  # fmt: skip
def command(
    names: tuple[str, ...],
    wants_all: bool,
    seed: int,
    quick: bool,
    out: Path | None,
    model: Path | None,
) -> None:
    """Run the notes' claims as experiments, and say which of them hold.

    NAME is an experiment, such as e04_root_d or e04; without any, they are listed. Each writes
    result.json and figure.svg into a folder of its own.
    """
    from regard.study.contents import CONTENTS, chosen

    asked = list(CONTENTS) if wants_all else chosen(names)
    if not asked:
        for name, title in CONTENTS.items():
            click.echo(f"{name}  {title.said(language())}")
        return
    from regard.study.conduct import conduct, experiments, write

    runs = experiments(model)
    place = out or (None if quick else Path("experiments"))
    exit_code = 0
    for name in asked:
        try:
            conducted = conduct(name, runs[name], seed, quick=quick)
        except RegardError as error:  # said at once, but the others are run all the same
            said = error.in_language(language())
            click.echo(WORDS[language()]["failed"].format(name=name, error=said), err=True)
            exit_code = error.exit_code
            continue
        _report(conducted, write(conducted, place) if place else None)
    sys.exit(exit_code)


def _report(conducted: "Conducted", place: Path | None) -> None:
    """A line for each claim, and on the side how long it took."""
    for finding in conducted.result.findings:
        click.echo(_line(conducted.name, finding))
    words = WORDS[language()]
    written = words["written"].format(place=place) if place else ""
    done = words["done"].format(name=conducted.name, seconds=conducted.seconds, place=written)
    click.echo(done, err=True)


def _line(name: str, finding: "Finding") -> str:
    from regard.study.claim import BEYOND, CHINESE, shown

    words, verdict = WORDS[language()], finding.verdict
    note = finding.claim.note
    return words["line"].format(
        name=name,
        verdict=CHINESE[verdict] if language() == "zh" else verdict,
        claim=finding.claim.words.said(language()),
        note=words["beyond"] if note == BEYOND else words["note"].format(note=note),
        number=shown(finding.number),
        relation=words[finding.claim.bound.relation],
        bound=shown(finding.claim.bound.value),
        control=shown(finding.control),
    )
