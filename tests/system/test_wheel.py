"""The wheel, installed elsewhere, translates with the model inside it: no network, no clone."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from regard.decode.translator import BUNDLED, load

ROOT = Path(__file__).parents[2]
TEXTS = ["三百零五元四角二分", "二〇二六年三月五日"]


def pip(*arguments, **more):
    quietly = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    command = [sys.executable, "-m", "pip", arguments[0], *quietly, *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """Runs Python where regard is the installed wheel and the clone cannot be imported."""
    place = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(place), str(ROOT))
    (wheel,) = place.glob("*.whl")
    pip("install", "--target", str(place / "installed"), str(wheel))
    # -S: what the clone's own installation adds to the path is not read, only what stands here
    packages = (str(place / "installed"), sysconfig.get_path("purelib"))
    env = {"PYTHONPATH": os.pathsep.join(packages), "PATH": os.environ["PATH"], "REGARD_LANG": "en"}

    def run(*arguments):
        command = [sys.executable, "-S", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_clone_is_out_of_reach(away):
    path, file = away("-c", "import sys, regard; print(sys.path); print(regard.__file__)").split(
        "\n"
    )[:2]
    assert str(ROOT / "src") not in path
    assert "installed" in Path(file).parts
    assert not Path(file).is_relative_to(ROOT)


def test_it_translates_as_the_clone_does(away):
    said = away("-m", "regard", "translate", *TEXTS).split("\n")[:-1]
    assert said == [one.text for one in load().translate(TEXTS)]
    assert all(said)


def test_its_model_is_the_one_in_the_clone_to_the_byte(away):
    place = Path(away("-c", "from regard.decode.translator import BUNDLED; print(BUNDLED)").strip())
    files = {
        file.relative_to(BUNDLED): file.read_bytes()
        for file in BUNDLED.rglob("*")
        if file.is_file()
    }
    assert files == {
        file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()
    }
