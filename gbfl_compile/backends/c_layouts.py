"""What stands around the .h/.c pair: nothing, an Arduino library, a PlatformIO library, a CMake project.

Sources stay at the top of the folder in each of them (Arduino calls that the flat layout), so that whatever
reads an artifact finds them in the same place.
"""

from __future__ import annotations

import json

from gbfl_compile.backends.c_numbers import Real
from gbfl_compile.backends.templates import render
from gbfl_compile.version import GENERATOR, VERSION

LAYOUTS = ("plain", "arduino", "platformio", "cmake")


def layout_files(layout: str, name: str, real: Real, digest: str) -> dict[str, bytes]:
    """The files a layout adds to the sources."""
    values = {"name": name, "real": real, "digest": digest, "generator": GENERATOR, "version": VERSION}
    match layout:
        case "arduino":
            return {
                "library.properties": render("c/library.properties.jinja", values),
                f"examples/selftest/{'selftest.ino'}": render("c/selftest.ino.jinja", values),
            }
        case "platformio":
            return {
                "library.json": _platformio(name, digest),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case "cmake":
            return {
                "CMakeLists.txt": render("c/CMakeLists.txt.jinja", values),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case _:
            return {}


def _platformio(name: str, digest: str) -> bytes:
    form = {
        "name": name,
        "version": VERSION,
        "description": f"A rule model, made from program {digest}",
        "headers": f"{name}.h",
        "build": {"srcDir": ".", "includeDir": ".", "srcFilter": [f"+<{name}.c>"], "flags": ["-ffp-contract=off"]},
    }
    return (json.dumps(form, indent=2) + "\n").encode("ascii")
