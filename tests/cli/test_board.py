import threading
import time

import pytest

from regard.cli.board import TensorBoard

pytest.importorskip("tensorboard")


@pytest.fixture(autouse=True)
def hook(monkeypatch):
    """What a thread's error comes to, if nobody keeps it back."""
    seen = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    return seen


def drawn(folder, tag):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder)).Reload()
    return [(event.step, event.value) for event in read.Scalars(tag)]


def test_a_run_that_goes_on_draws_what_it_does_again_once(tmp_path):
    for start, steps, value in ((0, (100, 200, 300), 1.0), (200, (300, 400), 2.0)):
        board = TensorBoard(tmp_path)
        board.step = start
        for step in steps:
            board.add_scalar("loss", value, step)
        board.close()
        time.sleep(1.1)  # files of one second are read in no order
    assert drawn(tmp_path, "loss") == [(100, 1.0), (200, 1.0), (300, 2.0), (400, 2.0)]


def test_nothing_is_written_before_the_first_number(tmp_path):
    TensorBoard(tmp_path / "curves")
    assert not (tmp_path / "curves").exists()


def test_an_error_of_its_thread_is_raised_and_not_printed_too(tmp_path, monkeypatch, hook):
    from tensorboard.summary.writer.record_writer import RecordWriter

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordWriter, "write", full)
    others, board = threading.enumerate(), TensorBoard(tmp_path)

    def draw():
        for step in range(100):
            board.add_scalar("loss", 1.0, step)
            time.sleep(0.01)

    with pytest.raises(OSError, match="No space left on device"):
        draw()
    for thread in threading.enumerate():
        if thread not in others:
            thread.join()
    assert hook == []
    other = threading.Thread(target=full)
    other.start()
    other.join()
    assert [type(told.exc_value) for told in hook] == [OSError]
