"""Every input that was ever a finding, and some more, tried again: each is read or refused, and nothing else."""

import random
import signal

import pytest

from tests.fuzz.runner import alarm, inputs, try_input
from tests.fuzz.targets import TARGETS

KEPT = [(name, path) for name, target in TARGETS.items() for path in target.corpus()]


@pytest.fixture(autouse=True)
def with_alarm():
    before = signal.signal(signal.SIGALRM, alarm)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("name", "path"), KEPT, ids=[f"{name}-{path.name}" for name, path in KEPT])
def test_past_findings_stay_fixed(name, path):
    outcome, where = try_input(TARGETS[name], path.read_bytes())
    assert outcome in ("read", "refused"), where
    if path.name.startswith("sound"):
        assert outcome == "read"


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_broken_inputs_are_read_or_refused(name):
    outcomes = []
    for data in inputs(TARGETS[name], random.Random(5), 150 * (1 + 2 * TARGETS[name].offspring)):
        outcome, where = try_input(TARGETS[name], data)
        assert outcome in ("read", "refused"), where
        outcomes.append(outcome)
    assert {"read", "refused"} == set(outcomes)


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_a_sound_input_in_the_corpus(name):
    assert any(path.name.startswith("sound") for path in TARGETS[name].corpus())
