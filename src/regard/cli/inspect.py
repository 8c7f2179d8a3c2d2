"""`regard inspect`: what is in a model directory."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from regard.cli.language import language

WORDS = {
    "en": {
        "network": "network", "parameters": "parameters", "vocabulary": "vocabulary",
        "directions": "from → to", "trained": "trained", "dev": "development text",
        "files": "files", "updates": "updates", "tokens": "target tokens", "weights": "weights",
    },
    "zh": {
        "network": "网络", "parameters": "参数", "vocabulary": "词表",
        "directions": "方向", "trained": "训练", "dev": "开发集",
        "files": "文件", "updates": "次更新", "tokens": "个目标词元", "weights": "权重",
    },
}  # fmt: skip


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
def command(model: Path, as_json: bool) -> None:
    """What is in a model directory, after every file was checked."""
    from regard.bundle import open_bundle
    from regard.tensors import n_stored, stored_dtype

    bundle = open_bundle(model)
    facts: dict[str, Any] = {
        "path": str(model),
        "model": asdict(bundle.model),
        "n_parameters": n_stored(bundle.weights),
        "dtype": stored_dtype(bundle.weights),
        "src_words": len(bundle.src_tokenizer.vocab),
        "tgt_words": len(bundle.tgt_tokenizer.vocab),
        "files": {
            file.relative_to(model).as_posix(): file.stat().st_size
            for file in sorted(model.rglob("*"))
            if file.is_file()
        },
        **{name: value for name, value in bundle.facts.items() if name != "model"},
    }
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    for name, value in _lines(facts, bundle.model.in_words):
        click.echo(f"{name}: {value}")


def _lines(facts: dict[str, Any], network: str) -> list[tuple[str, str]]:
    words = WORDS[language()]
    ways = ", ".join(" → ".join(way) for way in facts.get("directions", []))
    chosen = facts.get("weights", "?")
    if language() == "zh":
        chosen = facts.get("weights_zh", chosen)
    lines = [
        (words["network"], network),
        (words["parameters"], f"{facts['n_parameters']:,} ({facts['dtype']})"),
        (words["vocabulary"], f"{facts['src_words']:,} / {facts['tgt_words']:,}"),
        (words["directions"], ways or "-"),
        (words["trained"],
         f"regard {facts.get('regard', '?')}, {facts.get('updates', 0):,} {words['updates']}, "
         f"{facts.get('target_tokens', 0):,} {words['tokens']}; "
         f"{words['weights']}: {chosen}"),
        (words["dev"],
         "  ".join(f"{name} {value:g}" for name, value in facts.get("dev", {}).items()) or "-"),
    ]  # fmt: skip
    sizes = ", ".join(f"{name} {size:,}" for name, size in facts["files"].items())
    return [*lines, (words["files"], sizes)]
