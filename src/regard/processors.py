"""How many processors there are for this process."""

import os


def n_processors() -> int:
    """How many this process may use, which in a container can be fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # where the system does not say
        return os.cpu_count() or 1
