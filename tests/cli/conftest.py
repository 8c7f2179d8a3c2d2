import pytest


@pytest.fixture
def text(tmp_path):
    """Two files that say the same in letters and in capitals."""
    words = ["ab", "bc", "cd", "de", "ef", "fg"]
    lines = [" ".join(words[(n * k) % 6] for k in range(1, 2 + n % 4)) for n in range(400)]
    (tmp_path / "a.xx").write_text("".join(f"{line} {n}\n" for n, line in enumerate(lines)))
    (tmp_path / "a.yy").write_text("".join(f"{line.upper()} {n}\n" for n, line in enumerate(lines)))
    return "--src", tmp_path / "a.xx", "--tgt", tmp_path / "a.yy"
