"""The version, in one place that costs nothing to import."""

from __future__ import annotations

VERSION = "0.1.0"

GENERATOR = f"gbfl-compile {VERSION}"
"""How artifacts name what wrote them."""
