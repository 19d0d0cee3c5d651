"""A black box that does not answer in time is stopped; for one that answers or raises the limit changes nothing."""

import threading
import time

import numpy as np
import pytest

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.learning.black_box import BackgroundCall, answer_within, as_black_box, probabilities

ROWS = np.arange(40.0).reshape(20, 2)


def likely(rows):
    return 1 / (1 + np.exp(-rows[:, 0]))


def test_an_answer_in_time_is_the_answer():
    limited, free = (as_black_box(likely, ROWS, time_limit=limit) for limit in (30.0, None))
    assert (probabilities(limited, ROWS) == probabilities(free, ROWS)).all()
    assert limited.queries == free.queries


def test_no_answer_in_time_is_an_error_that_says_so():
    def stalls(rows):
        if len(rows) > 8:
            time.sleep(5)
        return likely(rows)

    box = as_black_box(stalls, ROWS, time_limit=0.1)
    began = time.monotonic()
    with pytest.raises(CannotRun, match=r"has not answered a block of 20 rows within 0\.1 seconds"):
        probabilities(box, ROWS)
    assert time.monotonic() - began < 4


def test_what_it_raises_is_raised():
    with pytest.raises(ConnectionError, match="line went dead"):
        answer_within(30.0, lambda _: (_ for _ in ()).throw(ConnectionError("line went dead")), ROWS)
    with pytest.raises(KeyboardInterrupt):
        answer_within(30.0, lambda _: (_ for _ in ()).throw(KeyboardInterrupt), ROWS)


def test_no_time_at_all_is_refused():
    with pytest.raises(BadInput, match="leaves the black box no time"):
        as_black_box(likely, ROWS, time_limit=0.0)


def test_the_answer_is_waited_for():
    go = threading.Event()
    call = BackgroundCall(lambda: go.wait(30), "waits")
    assert not call.ends_within(0.05)
    go.set()
    assert call.answer() is True
    assert call.ends_within(0)


@pytest.mark.parametrize("error", [ValueError("its own"), KeyboardInterrupt(), SystemExit(4)])
def test_its_error_is_raised_where_the_answer_is_awaited(error):
    def raises():
        raise error

    call = BackgroundCall(raises, "raises")
    assert call.ends_within(30)
    with pytest.raises(type(error)) as caught:
        call.answer()
    assert caught.value is error


def test_the_process_does_not_wait_for_it():
    go = threading.Event()
    BackgroundCall(lambda: go.wait(30), "not waited for")
    (own,) = [thread for thread in threading.enumerate() if thread.name == "not waited for"]
    assert own.daemon
    go.set()
