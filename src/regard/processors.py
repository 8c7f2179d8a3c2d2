"""Which processors this process has, and how many."""

import os
import platform
import re
from pathlib import Path

TOLD = Path("/proc/cpuinfo")
NUMBERS = ("cpu family", "model", "CPU implementer", "CPU part")  # chips of one name differ in them


def n_processors() -> int:
    """How many this process may use, which in a container can be fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # where the system does not say
        return os.cpu_count() or 1


def processor_name() -> str:
    """What the chip is called, with what else tells it from others: they round differently."""
    told = _told()
    if not told:
        return platform.processor() or platform.machine()
    name = told.get("model name", platform.machine())
    numbers = [f"{key} {told[key]}" for key in NUMBERS if key in told]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def is_intels() -> bool:
    """Whether the chip is Intel's own, for which Intel's libraries keep their best."""
    return "GenuineIntel" in _told().get("vendor_id", platform.processor())


def _told() -> dict[str, str]:
    """What the system tells of its last chip; nothing where it does not say."""
    try:
        return dict(re.findall(r"^([^\t:]+)\t*: (.+)$", TOLD.read_text(encoding="utf-8"), re.M))
    except OSError:
        return {}
