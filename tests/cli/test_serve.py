"""`regard serve` as a command: what it says, and what it loads."""

import time
from pathlib import Path

from click.testing import CliRunner

from regard.cli.main import COMMANDS
from regard.cli.serve import command

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


def test_help_names_what_can_be_asked():
    said = CliRunner().invoke(command, ["--help"]).output
    for option in ("--host", "--port", "--api-key", "--keys", "--deadline", "--lean"):
        assert option in said
    assert COMMANDS["serve"] in " ".join(said.split())


def test_it_says_where_and_which_way_and_warns_of_an_open_door(serve):
    server = serve(TATOEBA, "--host", "0.0.0.0", env={"REGARD_LANG": "zh"})
    assert server.said.startswith("regard正在提供zh → en：http://0.0.0.0:")
    assert "警告：0.0.0.0对其他机器开放，而没有设置--api-key" in server.log.read_text()
    assert server.get("/readyz", headers={"Host": "any.name.example"}).status_code == 200


def test_torch_is_loaded_behind_the_first_answers_unless_it_is_to_be_lean(serve):
    server = serve(TATOEBA, "--api-key", "a-key-for-others", lean=False)
    assert server.said.startswith("regard serves zh → en at http://127.0.0.1:")
    deadline = time.monotonic() + 30
    while len(server.workers()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "a-key-for-others" not in server.log.read_text()
