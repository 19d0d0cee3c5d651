"""The files that may stand around NAME.c and NAME.h, as this reader knows them: word for word, spacing aside.

They matter: a build file decides the flags, and -ffast-math there would make another program of the same source.
"""

from __future__ import annotations

import json
import re

from gbfl_compile.check.reading import Unread

CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(@NAME@ LANGUAGES C)
add_library(@NAME@ STATIC @NAME@.c)
target_include_directories(@NAME@ PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(@NAME@ PROPERTIES C_STANDARD 99 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
if(NOT MSVC)
target_compile_options(@NAME@ PRIVATE -ffp-contract=off)
endif()
option(GBFL_WITH_LIBM "Probabilities of rule sets" OFF)
if(GBFL_WITH_LIBM)
target_compile_definitions(@NAME@ PUBLIC GBFL_WITH_LIBM)
target_link_libraries(@NAME@ PUBLIC m)
endif()
enable_testing()
add_executable(@NAME@_selftest examples/selftest/main.c)
target_link_libraries(@NAME@_selftest PRIVATE @NAME@)
add_test(NAME @NAME@_selftest COMMAND @NAME@_selftest)
"""

ARDUINO = """
name=@NAME@
version=@TEXT@
author=@TEXT@
maintainer=@TEXT@
sentence=A rule model as a C scorer without allocation.
paragraph=@TEXT@
category=Data Processing
url=https://arduino.cc
architectures=*
includes=@NAME@.h
"""

SKETCH = r"""
#include <@NAME@.h>
void setup() {
Serial.begin(115200);
while (!Serial) {
}
const int wrong = @NAME@_selftest();
if (wrong == 0) {
Serial.println("@NAME@: every answer is right");
} else {
Serial.print("@NAME@: wrong on row ");
Serial.println(wrong);
}
Serial.println(@NAME@_digest());
}
void loop() {}
"""

SELFTEST = r"""
#include <stdio.h>
#include "@NAME@.h"
int main(void)
{
const int wrong = @NAME@_selftest();
if (wrong != 0) {
printf("@NAME@: wrong on row %d\n", wrong);
return 1;
}
printf("@NAME@: every answer is right, program %s\n", @NAME@_digest());
return 0;
}
"""

KNOWN = {
    "CMakeLists.txt": CMAKE,
    "library.properties": ARDUINO,
    "examples/selftest/selftest.ino": SKETCH,
    "examples/selftest/main.c": SELFTEST,
}

COMMENT = {".txt": r"\s*#(?!\[).*", ".ino": r"\s*//(?:.*[^\\\s])?\s*", ".c": r"\s*/\*(?:[^*]|\*(?!/))*\*/\s*"}
"""A whole line that says nothing, by the ending of the file."""


def layout_file(file: str, content: bytes, name: str) -> None:
    """Refuse a file that is not one of those known."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread(f"{file}: is not UTF-8") from None
    if file == "library.json":
        _platformio(text, name)
        return
    if file not in KNOWN:
        raise Unread(f"{file}: is not a file of an artifact that this reader knows")
    comment = next((sign for ending, sign in COMMENT.items() if file.endswith(ending)), "")
    said = [line for line in text.split("\n") if not re.fullmatch(comment, line)]
    lines = [" ".join(line.split()) for line in said if line.strip()]
    wanted = KNOWN[file].strip().split("\n")
    if len(lines) != len(wanted) or not all(_says(line, form, name) for line, form in zip(lines, wanted, strict=True)):
        raise Unread(f"{file}: is not as this reader knows it")


def _says(line: str, form: str, name: str) -> bool:
    pattern = re.escape(form.replace("@NAME@", name)).replace("@TEXT@", "[^\\n]*")
    return re.fullmatch(pattern, line) is not None


def _platformio(text: str, name: str) -> None:
    build = {"srcDir": ".", "includeDir": ".", "srcFilter": [f"+<{name}.c>"], "flags": ["-ffp-contract=off"]}
    try:
        found = json.loads(text)
        told = set(found) == {"name", "version", "description", "headers", "build"}
        known = told and found["name"] == name and found["headers"] == f"{name}.h" and found["build"] == build
    except (ValueError, TypeError, RecursionError):
        known = False
    if not known:
        raise Unread("library.json: is not as this reader knows it")
