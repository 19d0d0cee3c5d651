"""What `import model` would run instead of, or before, the model.py that was read."""

from __future__ import annotations

import ast
import marshal
import re
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path


def import_shadow(path: Path, content: bytes) -> str | None:
    """The first file beside a Python file that an import may run in its place; None where there is none."""
    folder, stem = path.parent, path.stem
    package = folder / stem
    if package.is_dir() and any(package.glob("__init__.*")):
        return f"{stem}/ beside it is a package, which Python imports instead: remove it"
    for file in sorted(folder.glob(f"{stem}.*")):
        if file.suffix in (".so", ".pyd"):
            return f"{file.name} beside it is a compiled module, which Python imports instead: remove it"
    for file in sorted((folder / "__pycache__").glob(f"{stem}.*.pyc")):
        if not _is_stale(file, path, content) and not _is_compiled_from(file, content):
            return f"__pycache__/{file.name} is what Python runs, and was not compiled from it: remove it"
    opening = folder / "__init__.py"
    if stem != "__init__" and opening.is_file() and not _does_nothing(opening.read_bytes()):
        return (
            "__init__.py beside it runs first, when the folder is imported as a package: remove it, or leave it empty"
        )
    return None


def _is_stale(file: Path, source: Path, content: bytes) -> bool:
    """Whether Python sees that the compiled file is older than its source, and compiles it again."""
    try:
        head = file.read_bytes()[:16]
        changed, size = int(source.stat().st_mtime) & 0xFFFFFFFF, len(content) & 0xFFFFFFFF
    except OSError:
        return False
    flags = int.from_bytes(head[4:8], "little")
    if len(head) < 16:
        return True
    if flags & 1:  # by the hash of the source: looked at only with the second bit
        return bool(flags & 2) and head[:4] == MAGIC_NUMBER and head[8:] != source_hash(content)
    return (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")) != (changed, size)


def _is_compiled_from(file: Path, content: bytes) -> bool:
    """Whether the compiled file holds the very code of this source. Code of another Python cannot be compared."""
    compiled = file.read_bytes()
    level = re.search(r"\.opt-([12])\.pyc$", file.name)
    if compiled[:4] != MAGIC_NUMBER:
        return False
    try:
        code = marshal.loads(compiled[16:])  # noqa: S302 - loaded and compared, never run
        expected = compile(content, "model", "exec", dont_inherit=True, optimize=int(level[1]) if level else 0)
    except (ValueError, EOFError, TypeError, SyntaxError):
        return False
    return bool(code == expected)


def _does_nothing(content: bytes) -> bool:
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body)
