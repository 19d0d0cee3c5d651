"""Rows drawn from a table that is larger than wanted: by seed, whatever the blocks, every class among them."""

import datetime
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.tables import draw as drawn_tables
from gbfl_compile.tables.draw import Choice, draw, drawn_rows, most_rows, read_database_table
from gbfl_compile.tables.sample import read_sample


def in_blocks(values, ends):
    return np.split(values, sorted(ends))


@given(
    labels=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=12, max_size=200),
    most=st.integers(8, 300),
    seed=st.integers(0, 5),
    data=st.data(),
)
def test_what_is_drawn_does_not_depend_on_the_blocks(labels, most, seed, data):
    values = np.array(labels, dtype=object)
    ends = data.draw(st.lists(st.integers(0, len(values)), max_size=8))
    whole, cut = draw((values,), most, seed), draw(in_blocks(values, ends), most, seed)
    assert whole.places.tolist() == cut.places.tolist()
    assert whole.of == cut.of == len(values)
    assert whole.places.tolist() == sorted(set(whole.places.tolist()))
    assert len(whole.places) == min(most, len(values))
    for label in set(labels):
        there = [i for i, other in enumerate(labels) if other == label]
        assert len(set(there) & set(whole.places.tolist())) >= min(2, len(there))


def test_every_row_is_drawn_as_often_as_any_other():
    labels, times = np.array(["a"] * 40 + ["b"] * 40), np.zeros(80)
    for seed in range(2000):
        times[draw((labels,), 20, seed).places] += 1
    assert times.sum() == 2000 * 20
    assert abs(times - 500).max() < 6 * np.sqrt(2000 * 0.25 * 0.75)  # six standard deviations


def test_another_seed_draws_others():
    labels = np.zeros(1000)
    assert draw((labels,), 50, 1).places.tolist() != draw((labels,), 50, 2).places.tolist()


def test_too_few_for_two_of_each_class_is_refused():
    with pytest.raises(BadInput, match="--rows 5: too few for two rows of each of the 3 classes"):
        draw((np.array(list("abcabcabc")),), 5, 0)


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(1000, 3))
    y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no, rather")
    y[[3, 700]] = "seldom"
    return pd.DataFrame({"a": x[:, 0], 'b "quoted", and more': x[:, 1], "n": random.integers(0, 9, 1000), "y": y})


WRITERS = {
    "t.csv": lambda table, path: table.to_csv(path, index=False),
    "t.csv.gz": lambda table, path: table.to_csv(path, index=False),
    "t.parquet": lambda table, path: table.to_parquet(path, row_group_size=130),
    "t.arrow": lambda table, path: table.to_feather(path, chunksize=70),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("rows_in_a_batch", [7, 1000])
def test_the_same_rows_are_drawn_from_every_kind_of_file(table, tmp_path, monkeypatch, name, rows_in_a_batch):
    WRITERS[name](table, tmp_path / name)
    batches = drawn_tables.table_batches
    monkeypatch.setattr(
        drawn_tables, "table_batches", lambda *arguments, **more: batches(*arguments, **more, rows=rows_in_a_batch)
    )
    assert most_rows(tmp_path / name) >= 1000
    found, drawn = drawn_rows(tmp_path / name, "y", 100, 4)
    assert drawn.of == 1000
    assert drawn.places.tolist() == draw((table["y"].to_numpy(),), 100, 4).places.tolist()
    expected = table.iloc[drawn.places].reset_index(drop=True)
    assert list(found.columns) == list(expected.columns)
    for column in expected.columns:
        assert found[column].tolist() == expected[column].tolist()
    assert (found["y"] == "seldom").sum() == 2


def test_lines_are_counted_however_they_end(tmp_path):
    for ending in (b"\n", b"\r\n", b"\r"):
        (tmp_path / "t.csv").write_bytes(b"a,y" + ending + 5 * (b"1,2" + ending))
        assert 5 <= most_rows(tmp_path / "t.csv") <= 6
        with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
            file.write((tmp_path / "t.csv").read_bytes())
        assert most_rows(tmp_path / "t.csv.gz") == most_rows(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_mining_a_sample_of_a_larger_table_says_how_many_rows_it_took(table, tmp_path, monkeypatch, capsys, ending):
    monkeypatch.chdir(tmp_path)
    WRITERS[f"t.{ending}"](table, tmp_path / f"t.{ending}")
    command = ["mine", f"t.{ending}", "--target", "y", "--train", "gbm", "--head", "tree", "--rows", "300"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "300 of 1000 rows are used; --rows takes more" in printed.out + printed.err


def test_the_same_program_is_mined_from_every_kind_of_file(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    programs = set()
    for ending in ("csv", "parquet", "arrow"):
        (tmp_path / ending).mkdir()
        WRITERS[f"t.{ending}"](table, tmp_path / ending / f"t.{ending}")
        order = ["--target", "y", "--train", "gbm", "--head", "tree", "--rows", "300", "--json"]
        assert main(["mine", f"{ending}/t.{ending}", *order, "-o", f"{ending}.json"]) == 0
        form = json.loads((tmp_path / f"{ending}.json").read_text())
        assert form["metadata"]["mining"]["data"].pop("name") == f"t.{ending}"
        del form["metadata_digest"]
        programs.add(json.dumps(form))
    assert len(programs) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("many", "is not a number"),
        ("inf", "cannot be learned from"),
        ("-1e300", "cannot be learned from"),
        ("", "rows have a missing value, the first in column 'a', row 901"),
    ],
)
def test_an_error_names_the_row_of_the_file(table, tmp_path, capsys, value, says):
    """Row 901 of the file, whatever row it is of those that were drawn."""
    wrong = table.astype({"a": object})
    wrong.loc[900, "a"] = value
    wrong["y"] = ["seldom" if i == 900 else "no" if i % 2 else "yes" for i in range(1000)]  # so that it is drawn
    wrong.to_csv(tmp_path / "t.csv", index=False)
    command = ["mine", str(tmp_path / "t.csv"), "--target", "y", "--train", "gbm", "--rows", "200"]
    assert main([*command, "--missing", "refuse"]) == 2
    printed = capsys.readouterr().err
    assert says in printed
    assert "row 901" in printed


def test_a_target_that_is_not_there_is_named_beside_those_that_are(table, tmp_path, capsys):
    for name in ("t.csv", "t.parquet"):
        WRITERS[name](table, tmp_path / name)
        assert main(["mine", str(tmp_path / name), "--target", "z", "--train", "gbm", "--rows", "200"]) == 2
        assert "has no column 'z' for --target: its columns are 'a'" in capsys.readouterr().err


def test_a_target_of_lists_is_refused_with_a_line(tmp_path, capsys):
    pd.DataFrame({"a": range(100), "y": [[i] for i in range(100)]}).to_parquet(tmp_path / "t.parquet")
    assert main(["mine", str(tmp_path / "t.parquet"), "--target", "y", "--train", "gbm", "--rows", "50"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("gbfl: ")
    assert len(printed.splitlines()) == 1


def test_moments_with_a_zone_are_read_from_duckdb(tmp_path):
    """DuckDB hands them to Python by way of pytz, which nothing else needs."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        connection.execute(
            "CREATE TABLE t AS SELECT TIMESTAMPTZ '2024-03-01 10:00:00.5+02' AS seen UNION ALL SELECT NULL"
        )
    read = read_database_table(f"duckdb:///{tmp_path / 'a.duckdb'}", "t")
    seen = sorted(read["seen"].dropna())
    assert seen == [datetime.datetime(2024, 3, 1, 8, 0, 0, 500_000)]
    assert len(read) == 2


def test_numbers_of_accounts_beyond_what_doubles_tell_apart_are_a_key(tmp_path):
    """As doubles some of them are equal, and rules on them would learn accounts by heart."""
    lines = "".join(f"{10**18 + 7919 * (n * 37 % 200)},{n % 9},{n % 2}\n" for n in range(200))
    (tmp_path / "t.csv").write_text(f"account,x,y\n{lines}")
    frame = pd.read_csv(tmp_path / "t.csv")
    for table in (tmp_path / "t.csv", frame):
        sample = read_sample(table, Choice("y"), most=1000)
        assert sample.features == ("x",)
        assert sample.notes[0].startswith("column 'account' has another number in every row: it is a key and left out")
    frame["account"] = frame["account"].astype(float)  # a quantity of that size
    assert read_sample(frame, Choice("y"), most=1000).features == ("account", "x")
