"""A name that is not there is answered with the one that was probably meant, as it is typed in a shell."""

import shlex

import pytest

from gbfl_compile.files.formats import similar_file


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "my loans"
    (home / "build").mkdir(parents=True)
    for name in ("loans.csv", "loans.gbfl.json", ".loans.txt"):
        (home / name).touch()
    return home


@pytest.mark.parametrize(
    ("mistyped", "meant"), [("loan.csv", "loans.csv"), ("loans.gbfl.jsn", "loans.gbfl.json"), ("biuld", "build")]
)
def test_a_mistyped_name_is_answered_with_the_one_beside_it(folder, mistyped, meant):
    assert similar_file(folder / mistyped) == f"; did you mean {shlex.quote(str(folder / meant))}?"


@pytest.mark.parametrize("name", ["weather.csv", "loans.txt", "x" * 200, "a\0b", "nowhere/loans.csv"])
def test_nothing_is_guessed_where_no_name_is_near(folder, name):
    assert similar_file(folder / name) == ""


def test_what_exists_needs_no_guess(folder):
    assert similar_file(folder / "loans.csv") == ""
    assert similar_file(folder / "build") == ""
