"""The version, and how the optional parts of this installation are installed; it costs nothing to import."""

from __future__ import annotations

VERSION = "0.1.0"

GENERATOR = f"gbfl-compile {VERSION}"
"""How artifacts name what wrote them."""

DISTRIBUTION = "gbfl-compile"


def install_command(extra: str = "") -> str:
    """The command that installs an extra, wherever this package came from: `pip install -e '.[onnx]'`.

    It names the checkout or wheel that the package was installed from; where there is none any more, the libraries
    themselves. No package index needs to have gbfl-compile.
    """
    import shlex
    from importlib.util import find_spec

    pip = ["pip", "install"] if find_spec("pip") is not None else ["uv", "pip", "install"]
    origin = _origin()
    if origin is None:
        return shlex.join([*pip, *_requirements(extra)])
    where, editable = origin
    return shlex.join([*pip, *(["-e"] if editable else []), f"{where}[{extra}]" if extra else where])


def _origin() -> tuple[str, bool] | None:
    """The folder or wheel that was installed, if it still exists, and whether it is installed in place."""
    import json
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import unquote, urlparse

    try:
        form = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        url = urlparse(form.get("url", ""))
        editable = bool(form.get("dir_info", {}).get("editable"))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return None
    path = Path(unquote(url.path))
    if url.scheme != "file" or not path.exists():
        return None
    return ("." if path.is_dir() and path.samefile(Path.cwd()) else str(path)), editable


def _requirements(extra: str) -> list[str]:
    """The libraries of an extra, those of the extras that it includes among them."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        lines = []
    found: list[str] = []
    for line in lines:
        requirement, _, condition = line.partition(";")
        if re.findall(r"""extra == ['"]([\w-]+)['"]""", condition) != ([extra] if extra else []):
            continue
        name, _, inner = requirement.strip().partition("[")
        if name == DISTRIBUTION:
            found += [each for one in inner.rstrip("]").split(",") for each in _requirements(one)]
        else:
            found.append(requirement.strip())
    return list(dict.fromkeys(found))
