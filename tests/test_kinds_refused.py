"""What does not take words and dates yet refuses them by name, with nothing written and nothing guessed."""

import pytest

from gbfl_compile import audit
from gbfl_compile.errors import BadInput
from tests.backends.test_python_kinds import LOANS


@pytest.mark.parametrize(
    ("what", "run"),
    [
        ("an audit of a library or a service", lambda folder: audit(LOANS, library=folder)),
        ("an audit with triplets", lambda folder: audit(LOANS, file=folder, triplets=folder)),
    ],
)
def test_words_are_refused_by_name(what, run, tmp_path):
    with pytest.raises(BadInput, match=f"{what}: 'contract' is a category, and only numbers are supported here"):
        run(tmp_path)
