import os
import signal
import threading
from contextlib import suppress

import pytest

from regard.train.leaving import listening

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted_and_a_second_one_falls_as_ever(number):
    with listening() as leaving:
        assert not leaving.is_wanted
        os.kill(os.getpid(), number)
        assert leaving.is_wanted
        assert leaving.signal == number
        assert [signal.getsignal(each) for each in SIGNALS] == [signal.SIG_DFL] * 2


def test_who_asks_is_told_at_once_and_once():
    told = []
    with listening(lambda: told.append("told")):
        assert told == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert told == ["told"]


def test_handlers_are_as_they_were_afterwards():
    before = [signal.getsignal(each) for each in SIGNALS]
    with suppress(ZeroDivisionError), listening():
        assert [signal.getsignal(each) for each in SIGNALS] != before
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_another_thread_cannot_listen_and_need_not():
    before, seen = [signal.getsignal(each) for each in SIGNALS], []

    def listen():
        with listening() as leaving:
            seen.extend([leaving.is_wanted, *(signal.getsignal(each) for each in SIGNALS)])

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert seen == [False, *before]
