"""What goes on beside ends as if it had been called: its answer, or whatever it raised."""

import threading

import pytest

from gbfl_compile.learn.threads import Started


def test_the_answer_is_waited_for():
    go = threading.Event()
    started = Started(lambda: go.wait(30), "waits")
    assert not started.ends_within(0.05)
    go.set()
    assert started.answer() is True
    assert started.ends_within(0)


@pytest.mark.parametrize("trouble", [ValueError("of its own"), KeyboardInterrupt(), SystemExit(4)])
def test_what_it_raised_is_raised_by_who_asks(trouble):
    def raises():
        raise trouble

    started = Started(raises, "raises")
    assert started.ends_within(30)
    with pytest.raises(type(trouble)) as met:
        started.answer()
    assert met.value is trouble


def test_the_process_need_not_wait_for_it():
    go = threading.Event()
    Started(lambda: go.wait(30), "not waited for")
    (own,) = [thread for thread in threading.enumerate() if thread.name == "not waited for"]
    assert own.daemon
    go.set()
