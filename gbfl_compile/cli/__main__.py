"""`python -m gbfl_compile.cli` is the installed command."""

from gbfl_compile.cli import run

run()
