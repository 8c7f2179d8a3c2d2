"""Text that is meant to hurt, and a translation that is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
WORDS = ["喜欢", "今天", "苹果", "学校", "朋友", *"我你他去吃看书的了吗很不在"]
EMOJI = "😀👩‍👩‍👧‍👦🇨🇳🏳️‍🌈👍🏽❤️‍🔥"
RTL = "مرحبا بالعالم \u202eשלום עולם\u202c "


def hostile_line(dice):
    """A line of bytes, of one of many kinds."""
    sentence = "".join(dice.choices(WORDS, k=dice.randint(1, 12))) + "。"
    kinds = [
        b"",
        dice.choice([" ", "\t", "\u3000", "\u200b", " \u00a0 ", "\ufeff"]).encode() * 3,
        ("".join(dice.choices(WORDS, k=4000))[:5000]).encode() if dice.random() < 0.02 else b"x",
        "".join(dice.choices(EMOJI, k=10)).encode(),
        (RTL + sentence).encode(),
        ("\x00\x01\x07\x1b[31m\x7f" + sentence + "\x0b\x0c\x85\u2028").encode(),
        sentence.encode()[:-2] + b"\xff\xfe\xc3(" + sentence.encode(),
        ("a" * dice.randint(1, 200)).encode(),
        "ᄒ̷̛͔̗̍̀a̶̢͎̐ ﷽ ﬁ ½ Ⅷ ｆｕｌｌ <2en> </s> ▁ <0x0A> \\n".encode(),
        ("<b>" + sentence + "</b> & %s {name} {{x}} http://a.b/?q=1").encode(),
    ]
    return dice.choice([sentence.encode()] * len(kinds) + kinds).replace(b"\n", b" ")


def translated(source, target, *arguments):
    """The output's lines, and the most memory it took, in MB."""
    command = [sys.executable, "-m", "regard", "translate", "--model", str(TATOEBA), *arguments]
    log, peak = target.with_suffix(".log"), 0.0
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "-i", str(source), "-o", str(target)],
            stdout=said, stderr=said, env={**os.environ, "REGARD_LANG": "en"},
        )  # fmt: skip
        while process.poll() is None:
            peak = max(peak, _peak(process.pid))
            time.sleep(0.02)
    assert process.returncode == 0, log.read_text()[-2000:]
    return target.read_bytes().decode().split("\n")[:-1], peak


def _peak(pid):
    """What a process has held at most so far, in MB: its own, not what it was forked from."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


@pytest.mark.timeout(1800)
def test_hostile_lines_are_all_answered_and_both_engines_agree(
    dice, often, tmp_path, record_property
):
    lines = [hostile_line(dice) for _ in range(often(100, 10_000))]
    source = tmp_path / "hostile.zh"
    source.write_bytes(b"".join(line + b"\n" for line in lines))
    quick, peak = translated(source, tmp_path / "a", "--engine", "ctranslate2", "--beam", "1")
    slow, most = translated(source, tmp_path / "b", "--engine", "torch", "--beam", "1")
    assert len(quick) == len(slow) == len(lines)
    blank = [
        n
        for n, line in enumerate(lines)
        if not line.decode(errors="replace").strip("\u200b \t\u3000\u00a0\ufeff")
    ]
    assert blank
    assert all(quick[n] == slow[n] == "" for n in blank)
    same = sum(a == b for a, b in zip(quick, slow, strict=True))
    assert same >= 0.99 * len(lines)
    assert max(peak, most) < 700
    record_property(
        "counted",
        f"{len(lines)} hostile lines, {len(quick)} and {len(slow)} answered, {same} the same; at "
        f"most {peak:.0f} MB by ctranslate2, {most:.0f} MB by torch",
    )


@pytest.mark.timeout(1800)
def test_a_killed_file_goes_on_to_the_output_of_one_that_was_not(
    dice, often, tmp_path, record_property
):
    source = tmp_path / "a.zh"
    sentences = ("".join(dice.choices(WORDS, k=8)) + "。" for _ in range(often(1800, 12_000)))
    source.write_text("\n".join(sentences), encoding="utf-8")
    whole, _ = translated(source, tmp_path / "whole", "--beam", "1")
    target, kills = tmp_path / "killed", 0
    command = [
        sys.executable, "-m", "regard", "translate", "--model", str(TATOEBA), "--beam", "1",
        "-i", str(source), "-o", str(target),
    ]  # fmt: skip
    while not target.exists():
        resumes = ["--resume"] if kills else []
        part = target.with_name("killed.part")
        before = part.stat().st_size if part.exists() else 0
        with subprocess.Popen([*command, *resumes], stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if kills < often(2, 20) and part.exists() and part.stat().st_size > before:
                    time.sleep(dice.uniform(0.0, 0.5))
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    break
                time.sleep(0.005)
        assert process.returncode in (0, -signal.SIGKILL)
        kills += process.returncode != 0
    assert kills >= 2
    assert target.read_text(encoding="utf-8").split("\n")[:-1] == whole
    record_property("counted", f"{kills} kills of a file translation, the same output")
