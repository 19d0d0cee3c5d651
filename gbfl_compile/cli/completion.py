"""`gbfl completion`: what a shell needs to complete commands, options and targets."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gbfl_compile.cli.flags import EQUAL

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print what a shell needs to complete gbfl's commands, options and targets.

    \b
    bash   eval "$(gbfl completion bash)"    in ~/.bashrc
    zsh    eval "$(gbfl completion zsh)"     in ~/.zshrc
    fish   gbfl completion fish | source     in ~/.config/fish/config.fish

    Example: gbfl completion bash
    """  # noqa: D301 - the backspace is click's sign for lines to keep
    root = context.find_root()
    completer = get_completion_class(shell)
    assert completer is not None  # noqa: S101 - click has all three
    click.echo(completer(root.command, {}, "gbfl", "_GBFL_COMPLETE").source())
    return EQUAL
