"""Calls an HTTP scorer with rows in JSON, standard library only. Passwords in an address are never printed.

    POST {"features": ["age", "income"], "rows": [[41.0, null], ["Infinity", -0.0]]}
    answer {"labels": ["yes", "no"], "probabilities": [[0.2, 0.8], [1.0, 0.0]]}

Labels or probabilities may be left out, and "scores" may be beside them. `REQUESTS` has the other forms of a request,
and an answer path such as `predictions[].class` says where the labels of another service are. A missing value is null,
a word is text, a boolean true or false, a date or a time in UTC text as ISO 8601 writes it (2024-03-01T09:30:00), an
infinity the text "Infinity" or "-Infinity". A user and password in the URL are sent as Basic authorisation, the
environment variable GBFL_TOKEN as a bearer token. Redirects are not followed: rows and secrets would go to an
unknown address.
"""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import math
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Value

LONGEST_ANSWER = 64 << 20
PIECE = 1 << 16
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TOKEN = "GBFL_TOKEN"  # noqa: S105 - the variable's name

REQUESTS: Mapping[str, Callable[[list[str], list[list[Any]]], Any]] = {
    "rows": lambda features, rows: {"features": features, "rows": rows},
    "records": lambda features, rows: [dict(zip(features, row, strict=True)) for row in rows],
    "instances": lambda features, rows: {"instances": [dict(zip(features, row, strict=True)) for row in rows]},
    "dataframe_split": lambda features, rows: {"dataframe_split": {"columns": features, "data": rows}},
}
"""The body of a request by the name of its form: ours, a list of objects, and those of common model servers."""


class NotScored(Exception):
    """A request that returned no labels. `whole` where no smaller request would do better."""

    def __init__(self, why: str, whole: bool = False) -> None:
        super().__init__(why)
        self.whole = whole


@dataclass(frozen=True, slots=True)
class Scorer:
    """Where to send requests, and how to print the address."""

    shown: str
    """Scheme and host alone: a user, a path and a query may each hold a secret."""
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    is_local: bool = False
    request: str = "rows"
    """One of REQUESTS."""
    answer: str | None = None
    """The path of the labels, `predictions[].class`; without one the answer has the form shown above."""


def scorer_at(url: str, request: str = "rows", answer: str | None = None) -> Scorer:
    """The scorer at an address, the form of a request and where an answer has its labels."""
    if request not in REQUESTS:
        raise BadInput(f"unknown request format {request!r}: use {', '.join(REQUESTS)}")
    if answer is not None and not all(answer.removesuffix("[]").split(".")):
        raise BadInput(f"{answer!r} is not a path: write labels, outputs.labels or predictions[].class")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise BadInput(
            "the scorer's URL cannot be read: write / ? # and @ of a password as %2F %3F %23 and %40"
        ) from None
    if any(not "!" <= letter <= "~" for letter in url):
        raise BadInput("the scorer's URL has a space or a letter beyond ASCII: write it as %20, %C3%A9, …")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.path:
        raise BadInput("a scorer is named module:function, or by a URL http://host/path or https://host/path")
    place = f"[{host}]" if ":" in host else host
    place = place if port is None else f"{place}:{port}"
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
    elif token := os.environ.get(TOKEN):
        if not token.isascii() or not token.isprintable():
            raise BadInput(f"{TOKEN} has a character that is not allowed in a token")
        headers["Authorization"] = f"Bearer {token}"
    shown = f"{parts.scheme}://{place}" + ("/…" if parts.path.strip("/") or parts.query else "")
    address = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
    return Scorer(shown, address, headers, host in LOOPBACK, request, answer)


def ask(
    scorer: Scorer, features: Sequence[str], rows: Sequence[Sequence[Value]], deadline: float
) -> list[dict[str, Any]]:
    """The answers to some rows, before `deadline` on the monotonic clock."""
    body = REQUESTS[scorer.request](list(features), [[_json_value(value) for value in row] for row in rows])
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        scorer.url, json.dumps(body, allow_nan=False).encode("utf-8"), scorer.headers, method="POST"
    )
    try:
        text = _in_time(lambda: _answer(scorer, request, deadline), deadline)
    except urllib.error.HTTPError as error:
        error.close()
        raise NotScored(f"it answered HTTP {error.code}") from None
    except TimeoutError:
        raise NotScored("it hung: the time was over", whole=True) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise NotScored("it hung: the time was over", whole=True) from None
        raise NotScored(f"it cannot be reached: {_reason(error.reason)}", whole=True) from None
    except (http.client.HTTPException, OSError) as error:
        raise NotScored(f"the connection broke: {type(error).__name__}") from None
    return _answers(text, len(rows), scorer.answer)


def _in_time(call: Callable[[], bytes], deadline: float) -> bytes:
    """The call in a thread that is left behind at the deadline: headers that drip escape a socket's own time limit."""
    brought: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            brought.put(call())
        except Exception as error:
            brought.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        reply = brought.get(timeout=_remaining_seconds(deadline))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(reply, Exception):
        raise reply
    return reply


def _answer(scorer: Scorer, request: urllib.request.Request, deadline: float) -> bytes:
    """Read in pieces: a server that drips a byte a second must not outlast the time limit."""
    handlers: list[Any] = [_NoRedirect()]
    if scorer.is_local:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    with opener.open(request, timeout=_remaining_seconds(deadline)) as answer:
        pieces, size = [], 0
        while piece := answer.read1(PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_ANSWER:
                raise NotScored(f"its answer is longer than {LONGEST_ANSWER >> 20} MB", whole=True)
            _remaining_seconds(deadline)
        return b"".join(pieces)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _remaining_seconds(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _reason(reason: Any) -> str:
    """Why a host was not reached, never the URL itself."""
    return getattr(reason, "strerror", None) or type(reason).__name__


def _json_value(value: Value) -> float | str | bool | None:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, str | bool):
        return value
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


KEYS = {"labels": "label", "probabilities": "probabilities", "scores": "scores"}


def _answers(text: bytes, count: int, path: str | None) -> list[dict[str, Any]]:
    """One form per row: its label, probabilities and scores, as far as the answer has them."""
    try:
        form = json.loads(text)
    except (ValueError, RecursionError):
        raise NotScored("its answer is not JSON") from None
    if path is not None:
        form = {"labels": _values(form, path.split("."), path)}
    lists = {key: form[key] for key in KEYS if key in form} if isinstance(form, dict) else {}
    if not any(isinstance(lists.get(key), list) for key in ("labels", "probabilities")):
        raise NotScored('its answer has no list "labels"')
    for key, values in lists.items():
        if not isinstance(values, list):
            raise NotScored(f"its {key!r} are not a list")
        if len(values) != count:
            raise NotScored(f"it gave {len(values)} {key} for {count} rows")
    return [{KEYS[key]: values[row] for key, values in lists.items()} for row in range(count)]


def _values(form: Any, steps: list[str], path: str) -> Any:
    """What a path leads to; `name[]` goes on in each item of a list."""
    if not steps:
        return form
    name, brackets, _ = steps[0].partition("[]")
    if name:
        if not isinstance(form, dict) or name not in form:
            raise NotScored(f"its answer has nothing at {path!r}: there is no {name!r}")
        form = form[name]
    if not brackets:
        return _values(form, steps[1:], path)
    if not isinstance(form, list):
        raise NotScored(f"its answer has nothing at {path!r}: {name!r} is not a list")
    return [_values(item, steps[1:], path) for item in form]
