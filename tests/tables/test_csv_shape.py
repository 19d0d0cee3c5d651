"""Rows of CSV files: each has the header's number of fields, or is refused by its line; none is lost."""

import gzip
import random

import pandas as pd
import pytest

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from gbfl_compile.tables import csv_shape as csv_rows
from gbfl_compile.tables.batches import table_batches
from gbfl_compile.tables.read import read_table

PROGRAM = Program(("a", "b"), ("no", "yes"), (Clause((Interval(1, 1.0, None),)),), Scorecard((0, 0), ((0, 1),), 0))

RAGGED = {
    "too short": ("a,b,c\n1,2,3\n4,5\n", "line 3 has fewer fields than the header, 2 in place of 3"),
    "too short, the last": ("a,b,c\n1,2,3\n4", "line 3 has fewer fields than the header, 1 in place of 3"),
    "too short, the first": ("a,b,c\n4,5\n1,2,3\n", "line 2 has fewer"),
    "too short behind a mark and carriage returns": ("\ufeffa,b,c\r\n1,2,3\r\n4,5\r\n", "line 3 has fewer"),
    "too short behind blank lines": ("a,b,c\n\n1,2,3\n\n\n4,5\n", "line 6 has fewer"),
    "too short behind a field of two lines": ('a,b,c\n1,"2\n2",3\n4,5\n', "line 4 has fewer"),
    "too short between odd quotes": ('a,b,c\n1,5" pipe,3\n4,6" pipe\n', "line 3 has fewer"),
    "too short beside commas at the ends": ("a,b,c\n1,2,3,\n4,5\n", "line 3 has fewer"),
    "too short after missing values": ("a,b,c\n1,2,\n,,\n4,5\n", "line 4 has fewer"),
    "words, then too short": ("a,b,c\n1,2,x\n4,y\n", "line 3 has fewer"),
    "a quote left open": ('a,b,c\n1,2,3\n4,"5,6\n7,8,9\n', "lines 3 to 4, one row as quoted, have fewer"),
    "too long": ("a,b,c\n1,2,3\n4,5,6,7\n", "line 3 has more fields than the header, 4 in place of 3"),
    "too long, the first": ("a,b,c\n1,2,3,4\n4,5,6\n", "line 2 has more fields"),
    "a title above the header": ("the loans of May\na,b\n1,2\n3,4\n", "line 2 has more .*names of all columns"),
    "a blank line of one column": ("a\n1\n\n2\n", 'line 3 is blank, .* write "" for one'),
    "a line of spaces of one column": ("a\n1\n  \n2\n", "line 3 is blank"),
    "a blank end of one column": ("a\n1\n2\n\n", "line 4 is blank"),
}

SOUND = {
    "missing values": ("a,b,c\n1,2,\n,,\n", 2),
    "blank lines among several columns": ("\n\na,b\n\n1,2\n  \n3,\n\n", 2),
    "a comma at every end": ("a,b\n1,2,\n3,,\n", 2),
    "no newline at the end": ("a,b\n1,2\n3,", 2),
    "missing values of one column": ('a\n1\n""\nNA\n2\n', 4),
    "one column after blank lines": ("\n\na\n1\n2\n", 2),
    "commas and newlines in quotes": ('a,b\n"x, y",1\n"x\ny",\n"say ""no""",\n', 3),
    "carriage returns": ("a,b\r\n1,2\r\n3,\r\n", 2),
    "carriage returns alone": ("a,b\r1,2\r3,\r", 2),
    "a long field": (f'a,b\n{"x" * 200_000},1\n5" pipe,\n', 2),
}


def written(tmp_path, text, ending):
    path = tmp_path / f"t{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending == ".csv.gz" else text.encode())
    return path


def batched(path, rows, text=()):
    return sum(len(batch) for batch in table_batches(path, (), text=text, rows=rows))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("how", RAGGED)
def test_a_row_with_other_fields_than_the_header_is_refused_by_its_line(tmp_path, how, ending):
    text, reason = RAGGED[how]
    path = written(tmp_path, text, ending)
    with pytest.raises(BadInput, match=reason):
        read_table(path)
    for rows in (1, 2, None):
        with pytest.raises(BadInput, match=reason):
            batched(path, rows)


@pytest.mark.parametrize("how", SOUND)
def test_no_row_of_a_sound_file_is_refused_or_lost(tmp_path, how):
    text, count = SOUND[how]
    path = written(tmp_path, text, ".csv")
    assert len(read_table(path)) == count
    assert [batched(path, rows) for rows in (1, 2, None)] == [count] * 3


def test_a_short_row_is_seen_where_the_last_column_is_kept_as_text(tmp_path):
    path = written(tmp_path, "a,key\n1,x\n2\n", ".csv")
    with pytest.raises(BadInput, match="line 3 has fewer"):
        read_table(path, text=("key",))
    with pytest.raises(BadInput, match="line 3 has fewer"):
        batched(path, 1, text=("key",))


def test_every_command_that_reads_a_table_names_the_short_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(PROGRAM, tmp_path / "p.json")
    (tmp_path / "t.csv").write_text("a,b,label\n" + "1,2,yes\n1,0,no\n" * 30 + "1,2\n")
    for command in (
        ["mine", "t.csv", "--target", "label", "--train", "gbm"],
        ["mine", "t.csv", "--target", "label", "--train", "gbm", "--rows", "40"],
        ["score", "p.json", "t.csv", "-o", "s.csv"],
        ["audit", "p.json", "--scored", "t.csv"],
        ["lint", "p.json", "--data", "t.csv"],
        ["show", "p.json", "--row", "t.csv"],
    ):
        assert main(command) == 2
        assert "t.csv: line 62 has fewer fields than the header, 2 in place of 3" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json", "t.csv"]


PIECES = [",", "\n", '"', "a", "1", " ", "\r\n", '""', '"x"', ",", ",1\n", '"p\nq"', '"x,y"', "1,1\n", "1,1,1\n"]


def test_a_look_at_the_separators_passes_nothing_that_reading_refuses(tmp_path, monkeypatch):
    """Files of random pieces, cut into blocks of any length: what is regular has the rows that pandas finds."""
    draw, path, passed = random.Random(0), tmp_path / "t.csv", 0
    for _ in range(2_000):
        names = draw.randint(1, 3)
        text = draw.choice(["", "\ufeff"]) + ",".join("abc"[:names]) + draw.choice(["\n", "\r\n"])
        text += "".join(draw.choices(PIECES, k=draw.randint(0, 12)))
        path.write_bytes(text.encode())
        monkeypatch.setattr(csv_rows, "BLOCK", draw.choice([1, 3, 7, 100]))
        with path.open("rb") as file:
            if not csv_rows._is_regular_file(file, names):
                continue
        passed += 1
        csv_rows._read_for_ragged(path, names, packed=False)
        with csv_rows.open_csv(path, packed=False) as file:
            rows = [row for _, _, row, is_blank in csv_rows._records(path, file) if not is_blank][1:]
        assert pd.read_csv(path, index_col=False, dtype=object, keep_default_na=False).to_numpy().tolist() == rows
    assert passed > 100
