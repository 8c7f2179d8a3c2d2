"""The package as a whole: what importing it costs, what it shows, what the wheel holds."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).parents[1]


def python(code, **more):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **more
    ).stdout.strip()


def test_importing_regard_does_not_import_torch():
    heavy = "sorted({'torch', 'numpy', 'jaxtyping'} & set(sys.modules))"
    assert python(f"import sys, regard; print({heavy})") == "[]"


def test_the_library_is_loaded_when_named():
    shown = python("import regard; print(regard.attention.attend.__name__, dir(regard))")
    assert shown == f"attend {regard.__all__}"
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'nothing'"):
        _ = regard.nothing


def test_the_public_names_of_the_library_are_these():
    assert regard.attention.__all__ == [
        "AdditiveAttention",
        "Attended",
        "Blocks",
        "Cache",
        "Causal",
        "CrossAttention",
        "FixedKVCache",
        "GaussianAttention",
        "KVCache",
        "Layout",
        "LearnedPositions",
        "Mask",
        "Packed",
        "Padded",
        "RotaryPositions",
        "SelfAttention",
        "SinusoidalPositions",
        "additive_attention",
        "additive_scores",
        "attend",
        "attend_hard",
        "causal_mask",
        "causal_padding_mask",
        "dense",
        "dot_attention",
        "dot_scores",
        "gaussian_attention",
        "gaussian_scores",
        "masked_softmax",
        "padding_mask",
        "rotation",
        "scaled_dot_attention",
        "scaled_dot_scores",
        "sinusoidal_positions",
        "valid_lens_mask",
    ]
    for name in regard.attention.__all__:
        assert getattr(regard.attention, name) is not None


def test_the_attention_library_stands_on_next_to_nothing_else_of_regard():
    loaded = python(
        "import sys, regard.attention; "
        "print(sorted(m for m in sys.modules if m.startswith('regard.') and m.count('.') == 1))"
    )
    # the last asks the system about its chip, and stands on nothing at all
    assert loaded == "['regard.attention', 'regard.errors', 'regard.processors']"


def test_the_changelog_knows_this_version():
    assert f"[{regard.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_wheel_works_away_from_the_clone(tmp_path):
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("not a clone")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    away = {
        "cwd": tmp_path,
        "env": {"PYTHONPATH": str(tmp_path / "installed"), "REGARD_LANG": "zh"},
    }
    assert python("import regard; print(regard.__file__)", **away).startswith(str(tmp_path))
    said = subprocess.run(
        [sys.executable, "-m", "regard", "--version"], capture_output=True, text=True, **away
    )
    assert said.stdout == f"regard {regard.__version__}\n"
    assert (
        python(
            "from regard.errors import ConfigError; "
            "print(ConfigError('unknown setting {name}', name='x').in_language('zh'))",
            **away,
        )
        == "没有x这项设置"
    )
