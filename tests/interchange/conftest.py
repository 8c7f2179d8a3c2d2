"""Models that several files of this folder read, made once."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def tatoeba():
    """A real model, Chinese to English."""
    return HERE.parent / "models" / "tatoeba-zh-en"


@pytest.fixture(scope="session")
def teach():
    """The module that makes and teaches small Marians."""
    spec = importlib.util.spec_from_file_location("marians", HERE / "marians.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def marians(teach, tmp_path_factory):
    """A function from a choice of settings to the directory of a Marian that can reverse."""
    made = {}

    def marian(choice):
        if choice not in made:
            made[choice] = teach.trained_marian(tmp_path_factory.mktemp("marian") / "hf", choice)
        return made[choice]

    return marian
