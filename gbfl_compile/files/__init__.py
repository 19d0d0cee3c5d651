"""Files written completely or not at all; and the folders of templates that come with the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gbfl_compile.errors import CannotRun

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def resource_folder(name: str) -> Path:
    """The folder `templates` or `runtime_c`: inside the package in a wheel, beside it in a checkout."""
    for home in (_PACKAGE / "_resources", _PACKAGE.parent):
        if (home / name).is_dir():
            return home / name
    raise CannotRun(f"{name}/ is in neither the package nor its checkout: install gbfl-compile again")
