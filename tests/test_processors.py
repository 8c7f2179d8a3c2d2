"""Only processors that this process may use are counted."""

import os

import pytest

from regard.processors import n_processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not say")
def test_processors_that_others_have_are_not_counted():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert n_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert n_processors() == len(allowed)


def test_where_the_system_does_not_say_all_are(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert n_processors() == 12
