"""Tables and triplets on their way in, fuzzed."""

import contextlib
import re

from tests.fuzz.mutations import broken_bytes, broken_tokens
from tests.fuzz.target import check_refusal, folder, place_file


def run_table(data):
    from gbfl_compile.errors import BadInput
    from gbfl_compile.tables.batches import arrow_numbers, column_names, table_batches
    from gbfl_compile.tables.draw import drawn_rows, most_rows
    from gbfl_compile.tables.read import feature_matrix, read_table

    path = place_file(f"table{_ending(data)}", data)
    try:
        table = read_table(path)
    except BadInput as refusal:
        return check_refusal(refusal)
    names = [""]
    with contextlib.suppress(BadInput):  # and once more in batches
        names = column_names(path)
        for batch in table_batches(path, names, rows=7):
            if hasattr(batch, "schema"):
                for name in set(names):
                    arrow_numbers(batch.column(name), name, "table", 0)
    with contextlib.suppress(BadInput):  # and some of its rows
        assert most_rows(path) + 1 >= len(table)  # a last line may have no end
        rows, drawn = drawn_rows(path, names[-1], 4, 0)
        assert len(rows) == len(drawn.places) <= 4
    with contextlib.suppress(BadInput):  # text is not a number, and the table is none the worse for it
        feature_matrix(table, tuple(str(name) for name in table.columns), "table")
    return "read"


MAGIC = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".feather"}


def _ending(data):
    """A file's format, by how it begins."""
    return next((ending for begins, ending in MAGIC.items() if data.startswith(begins)), ".csv")


def fresh_table(choose):
    import gzip
    import io

    import numpy as np
    import pandas as pd
    import pyarrow as pa

    rows = choose.randrange(0, 30)
    draw = np.random.default_rng(choose.randrange(2**32))
    table = pd.DataFrame(
        {
            "age": draw.normal(size=rows),
            'größe, "x"': draw.integers(0, 9, rows),
            "flag": draw.integers(0, 2, rows).astype(bool),
            "word": [choose.choice(("a", "", "=1+1", "a\nb", "NaN", "é")) for _ in range(rows)],
            "when": pd.to_datetime(draw.integers(0, 10**9, rows), unit="s"),
        }
    )[choose.sample(["age", 'größe, "x"', "flag", "word", "when"], choose.randint(1, 5))]
    text = table.to_csv(index=False).encode()
    buffer = io.BytesIO()
    match choose.choice(("csv", "csv", "gz", "parquet", "parquet", "arrow", "stream")):
        case "csv":
            return text
        case "gz":
            return gzip.compress(text, mtime=0)
        case "arrow":
            table.to_feather(buffer, compression=choose.choice(("lz4", "zstd", "uncompressed")))
            return buffer.getvalue()
        case "stream":
            whole = pa.Table.from_pandas(table, preserve_index=False)
            with pa.ipc.new_stream(buffer, whole.schema) as stream:
                stream.write_table(whole, max_chunksize=5)
            return buffer.getvalue()
    table.to_parquet(buffer, index=choose.random() < 0.2, compression=choose.choice(("snappy", "gzip", "zstd", None)))
    return buffer.getvalue()


def broken_table(choose, data, other):
    return (
        broken_tokens(choose, data, other)
        if _ending(data) == ".csv" and choose.random() < 0.5
        else broken_bytes(choose, data)
    )


def run_triplets(data):
    from gbfl_compile.errors import BadInput
    from gbfl_compile.learning.consistency import load_triplets

    try:
        load_triplets(place_file("triplets.npz", data))
    except BadInput as refusal:
        return check_refusal(refusal)
    return "read"


def fresh_triplets(choose):
    import numpy as np

    from gbfl_compile.learning.consistency import Triplets, save_triplets

    rows, width = choose.randrange(0, 6), choose.randrange(1, 4)
    draw = np.random.default_rng(choose.randrange(2**32))
    x, pp, pn = (draw.normal(size=(rows, width)) for _ in range(3))
    flags = draw.integers(0, 2, (2, rows)).astype(bool)
    label = draw.integers(0, 3, rows) if choose.random() < 0.5 else np.array(["no"] * rows, dtype=np.str_)
    path = folder()[1] / "fresh.npz"
    save_triplets(path, Triplets(x, pp, pn, *flags, label, tuple(f"x{i}" for i in range(width))))
    return path.read_bytes()


def broken_archive(choose, data, _):
    """The archive's bytes broken, or an array of it replaced by one that does not belong there."""
    import io
    import zipfile

    if choose.random() < 0.4:
        return broken_bytes(choose, data)
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            members = {name: old.read(name) for name in old.namelist()}
    except Exception:  # broken before
        return broken_bytes(choose, data)
    name = choose.choice([*members, "other.npy", "../x.npy"])
    members[name] = broken_member(choose, members.get(name, b""))
    if choose.random() < 0.2:
        members.pop(choose.choice(list(members)))
    with zipfile.ZipFile(buffer, "w", choose.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as new:
        for member, content in members.items():
            new.writestr(member, content)
    return buffer.getvalue()


SHAPES = (b"(-1,)", b"(99999999999, 99999999999)", b"(2**70,)", b"()", b"(1, 1, 1)", b"'x'", b"(" * 300, b"(1.5,)")
TYPES = (b"'|O'", b"'<U999999999'", b"'<f2'", b"'>f8'", b"'<c16'", b"'|V8'", b"'<M8[ns]'", b"[('a', '<f8')]", b"7")


def broken_member(choose, content):
    match choose.choice(("bytes", "shape", "type", "empty", "pickle")):
        case "shape":
            return re.sub(rb"\([0-9, ]*\)", lambda _: choose.choice(SHAPES), content[:200], count=1) + content[200:]
        case "type":
            return (
                re.sub(rb"'[<>|][a-zA-Z][0-9]+'", lambda _: choose.choice(TYPES), content[:200], count=1)
                + content[200:]
            )
        case "empty":
            return b""
        case "pickle":
            return b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x05abort\x93)R."
    return broken_bytes(choose, content) if content else b"\x93NUMPY"
