"""One server for all tests that do not hurt it, and one with a key."""

from pathlib import Path

import pytest

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


@pytest.fixture(scope="session")
def server(serve_all):
    return serve_all(TATOEBA)


@pytest.fixture(scope="session")
def locked(serve_all, tmp_path_factory):
    """A server with two keys: one plain, one hashed in a file, with ten characters to spend."""
    from hashlib import sha256

    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text(f"# keys\n{sha256(b'few').hexdigest()} few 10\n")
    return serve_all(TATOEBA, "--api-key", "open-sesame", "--keys", file)


@pytest.fixture(scope="session")
def translator():
    """The same model, asked without a server."""
    import regard

    return regard.load(TATOEBA, engine="ctranslate2")
