"""`gbfl`: arguments in, one verb called, text or JSON out. `entry` lists the commands."""

from __future__ import annotations

import sys

from gbfl_compile.cli.entry import main


def run() -> None:
    """The installed command."""
    sys.exit(main())
