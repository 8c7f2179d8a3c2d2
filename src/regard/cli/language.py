"""Which language the person at the keyboard reads."""

import os
from typing import Literal

Language = Literal["en", "zh"]


def language() -> Language:
    """Chinese when REGARD_LANG or, without it, the locale says so; else English."""
    said = os.environ.get("REGARD_LANG") or _locale()
    return "zh" if said.lower().startswith("zh") else "en"


def _locale() -> str:
    # The order in which the system's own programs look.
    return next(
        (os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), ""
    )
