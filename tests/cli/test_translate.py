import io
from itertools import islice

import pytest

from regard.cli.main import main
from regard.cli.translate import BUNDLED
from regard.data.tasks import examples
from regard.decode.translator import open_translator


def translate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["translate", *map(str, arguments)])
    return left.value.code or 0


def test_without_a_model_the_one_that_comes_with_regard_is_asked(capsys, monkeypatch):
    assert translate("三百零五元四角二分", "二〇二四年三月二十一日") == 0
    assert capsys.readouterr().out == "305 yuan 42 fen\nMarch 21, 2024\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("三分之二\n\n十二\n"))
    assert translate() == 0
    assert capsys.readouterr().out == "two thirds\n\ntwelve\n"


def test_the_model_that_comes_with_regard_gets_unseen_numerals_right():
    unseen = list(islice(examples("numerals", 2, "test"), 300))
    said = open_translator(BUNDLED).translate([example.src for example in unseen])
    assert sum(a == b.tgt for a, b in zip(said, unseen, strict=True)) >= 0.98 * len(unseen)
