"""Every artifact of the corpus is the recorded one, byte for byte."""

import pytest

from tests.corpus import artifacts, read_record


@pytest.fixture(scope="module")
def emitted():
    pytest.importorskip("onnx")
    return dict(artifacts())


def test_every_artifact_and_digest_is_the_recorded_one(emitted):
    record = read_record()
    assert emitted.keys() == record.keys()
    assert [key for key in record if emitted[key] != record[key]] == []


def test_the_corpus_reaches_every_target_and_both_decisions(emitted):
    def emits(word):
        return any(f" {word} " in f"{key} " and digest != "refused" for key, digest in emitted.items())

    from gbfl_compile.backends import BACKENDS

    assert all(emits(target) for target in BACKENDS)
    assert all(emits(option) for option in ("form=view", "form=dbt", "form=macro", "dtype=float32", "layout=cmake"))
