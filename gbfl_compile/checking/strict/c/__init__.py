"""Emitted C, accounted for token by token: what is read here may be called proved.

    read_strict_c(files) -> (Reading(..., place="model_predict, model_predict_proba, ..."), ...)

lexer      text to tokens, refusing what compilers may see differently
literals   numbers and strings, exactly or not at all
template   the known files (known/README.md), matched against the tokens
holes      what may fill each kind of hole          conditions   rules, and the nested ifs of a tree
tree, rules, bits, names   what was found there, as readings     layouts   build files and examples
"""

from __future__ import annotations

from gbfl_compile.checking.strict.c.artifact import is_model_header, read_strict_c

__all__ = ["is_model_header", "read_strict_c"]
