"""What several commands share: how a file is named, and the flags that mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import click

EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes. After a signal it is 128 and the signal's number, whatever a command says."""

FILE = click.Path(path_type=Path, readable=False)
"""A path. Whether it can be read or written is found out, and said, by whoever does so."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
