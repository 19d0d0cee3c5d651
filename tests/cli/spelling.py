"""Whether a command that a text mentions could be run: the command is there, and so is every flag."""

import click

from gbfl_compile.cli.entry import gbfl


def misspelt(command: str) -> str | None:
    """What is wrong with `gbfl …`, or None. Arguments are not looked at: a text may say PROGRAM or leave them out."""
    _, *words = command.split()
    at: click.Command = gbfl
    path: list[str] = []
    while isinstance(at, click.Group) and words and not words[0].startswith("-"):
        path.append(words.pop(0))
        if path[-1] not in at.commands:
            return f"there is no command {' '.join(path)}"
        at = at.commands[path[-1]]
    context = click.Context(at)
    known = {name for parameter in at.get_params(context) for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        flag = word.partition("=")[0]
        if flag.startswith("-") and flag not in ("-", "--") and flag not in known:
            return f"gbfl {' '.join(path)} has no {flag}"
    return None
