"""`python -m gbfl_compile` is the installed command."""

from gbfl_compile.cli import run

run()
