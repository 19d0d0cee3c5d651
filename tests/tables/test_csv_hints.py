"""Files that are CSV to other programs: the error says what is the matter and what to do."""

import gzip
import re

import pandas as pd
import pytest

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import load
from gbfl_compile.tables.batches import column_names
from gbfl_compile.tables.csv_shape import category_hint
from gbfl_compile.tables.draw import Choice
from gbfl_compile.tables.read import feature_matrix, read_table
from gbfl_compile.tables.sample import read_sample

SEPARATED = {";": "separated by semicolons", "\t": "separated by tabs", "|": "separated by upright strokes"}


@pytest.mark.parametrize("mark", SEPARATED)
def test_another_separator_is_reported_with_a_way_out_that_works(tmp_path, mark):
    path = tmp_path / "t.csv"
    path.write_text(f"a{mark}b{mark}class\n0,1{mark}2,5{mark}x\n1,25{mark}3{mark}y\n")
    for read in (read_table, column_names):
        with pytest.raises(BadInput, match=SEPARATED[mark]) as refused:
            read(path)
    command = str(refused.value).split("in pandas: ")[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        exec(f"import pandas; pandas.{command}", {"FILE": "t.csv", "NEW": "new.csv"})
    assert read_table(tmp_path / "new.csv").to_dict("list") == {"a": [0.1, 1.25], "b": [2.5, 3.0], "class": ["x", "y"]}


def test_one_column_whose_name_has_a_semicolon_is_a_table(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1\n2\n")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a;b": [1, 2]}


@pytest.mark.parametrize(
    ("encoding", "hint"),
    [("latin-1", "0xe4 is not UTF-8.*iconv -f WINDOWS-1252"), ("utf-16", "is UTF-16.*iconv -f UTF-16")],
)
@pytest.mark.parametrize("text", ["größe,äge\n1,2\n", "a,b\n1,ä\n2,3\n"])
def test_another_encoding_is_reported_with_the_way_out(tmp_path, encoding, hint, text):
    text = text.replace("größe", "ä")
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    with pytest.raises(BadInput, match=hint):
        read_table(tmp_path / "t.csv")


WORDS = {
    '"5467,47"': "write numbers with a point",
    '"5,467.47"': "write numbers with a point",
    "5'467.47": "write numbers with a point",
    "-12 000": "write numbers with a point",
    "12%": "write the number alone",
    "$12.50": "write the number alone",
    "-": "leave a missing value empty",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mined(folder, header, first, capsys):
    rows = "".join(f"{n},{n % 7},{n % 3},{n % 2}\n" for n in range(60))
    (folder / "t.csv").write_text(f"{header}\n{first}\n{rows}")
    assert main(["mine", "t.csv", "--target", "class", "--train", "gbm"]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("word", WORDS)
def test_a_number_in_another_notation_is_reported_with_the_right_one(folder, word, capsys):
    message = mined(folder, "a,b,c,class", f"{word},1,1,1", capsys)
    assert f"column 'a', row 1: {word.strip(chr(34))!r} is not a number: {WORDS[word]}" in message
    assert "or drop the column with --drop" in message


def test_a_word_like_any_other_has_no_hint(folder, capsys):
    message = mined(folder, "a,b,c,class", "Bern,1,1,1", capsys)
    way_out = "put numbers in place of its words, say --kind a=category, or drop the column with --drop"
    assert f"'Bern' is not a number: {way_out}\n" in message


def test_all_columns_of_words_are_reported_at_once_and_the_way_out_works(folder, capsys):
    message = mined(folder, "the city,b,day,class", "Bern,1,2024-01-01,1", capsys)
    assert "2 columns are not all numbers, 'the city', 'day'" in message
    assert "leave them out with --drop 'the city' --drop day\n" in message
    dropped = ["--drop", "the city", "--drop", "day", "--clauses", "2", "--no-baselines", "-q"]
    assert main(["mine", "t.csv", "--target", "class", "--train", "gbm", *dropped]) == 0


def test_an_absent_column_is_reported_with_those_that_exist(tmp_path):
    (tmp_path / "t.csv").write_text("age, income\n1,2\n")
    table = read_table(tmp_path / "t.csv")
    with pytest.raises(BadInput, match=r"has no column 'income': its columns are 'age', ' income'"):
        feature_matrix(table, ("age", "income"), "t.csv")


@pytest.mark.parametrize("first", ["sep=;", "sep=,", "sep=\t"])
def test_a_line_for_a_spreadsheet_is_reported(tmp_path, first):
    (tmp_path / "t.csv").write_text(f"{first}\na{first[-1]}b\n1{first[-1]}2\n")
    with pytest.raises(BadInput, match=re.escape(f"first line, {first!r}, is for a spreadsheet")):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("rows", [[], ["--rows", "50"]])
def test_a_column_without_a_name_is_not_a_feature(folder, capsys, rows):
    """pandas would call it `Unnamed: 0`, and a table that is scored has no column of that name."""
    lines = "".join(f"{n},{n % 7},{n % 3},{n % 2}\n" for n in range(60))
    (folder / "t.csv").write_text(f",a,b,class\n{lines}")
    command = ["mine", "t.csv", "--target", "class", "--train", "gbm", "--clauses", "2", "--no-baselines", "-q", *rows]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert "column 1 has no name in the header: name it, or leave it out with --drop 'Unnamed: 0'\n" in message
    assert main([*command, "--drop", "Unnamed: 0"]) == 0
    assert main(["score", "model.gbfl.json", "t.csv", "-o", "s.csv", "-q"]) == 0
    (folder / "t.csv").write_text(f"a,,,class\n{lines}")
    assert main(command) == 2
    assert "t.csv: 2 columns have no name in the header: name them\n" in capsys.readouterr().err


LOOKALIKES = {
    "write dates as": [f"0{month}/{day}/2016" for month in range(1, 10) for day in range(10, 29)],
    "with times as": ["31.12.2016", "1.1.2017", "28.02.2018"],
    "2024-03-01 10:00:00": [
        "31.12.2016 08:15",
        "02/01/2017 8:15 PM",
        "2017/02/01 08:15:00",
        "2 Mar 2017, 10:20",
        "1.1.17T08:15Z",
    ],
    "write the numbers alone": ["$1,200", "$13,787", "$9", "$12"],
    "write numbers with a point": ["1.200,50", "13.787,00", "9,5"],
    "treated as codes": ["01067", "50667", "90210"],
}


@pytest.mark.parametrize("advice", LOOKALIKES)
def test_a_category_of_numbers_or_dates_in_another_form_says_so(advice):
    assert advice in category_hint(LOOKALIKES[advice])


@pytest.mark.parametrize("texts", [["a", "b"], ["Köln", "4711"], ["1-bedroom", "2-bedroom"], []])
def test_words_are_words(texts):
    assert category_hint(texts) == ""


CODED = [("01067" if place % 2 else "50667", 2000 + place % 7, "yes" if place % 3 else "no") for place in range(60)]


@pytest.mark.parametrize("packed", [False, True])
def test_numbers_that_begin_with_a_zero_are_codes(tmp_path, packed):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    lines = [f"{zip_code},{year},{0.5 + place},{label}" for place, (zip_code, year, label) in enumerate(CODED)]
    content = "\n".join(["zip,year,share,class", *lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    sample = read_sample(path, Choice("class"), most=1000)
    assert sample.columns is not None
    assert sample.columns.kinds == ("category", "number", "number")
    assert set(sample.columns.book.texts[0]) == {"01067", "50667"}
    assert any("'zip'" in note and "codes" in note for note in sample.notes)
    plain = read_sample(path, Choice("class", kinds={"zip": "number"}), most=1000)
    assert plain.columns is None  # all numbers, as the user says


def test_a_word_for_a_missing_value_is_answered_with_the_option(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{place if place % 9 else '-'},{'yes' if place % 3 else 'no'}" for place in range(60)]
    path.write_text("\n".join(["income,class", *lines, ""]))
    with pytest.raises(BadInput, match="'-' is not a number: leave a missing value empty, say --na -, "):
        read_sample(path, Choice("class"), most=1000)
    assert read_sample(path, Choice("class", na=("-",)), most=1000).notes[0].startswith("'-' means a missing value")


@pytest.mark.parametrize("first", ["-", "unknown"])
def test_a_text_that_means_missing_is_added_to_those_of_the_table(folder, first, capsys):
    """--na replaces the usual ones: with the new one alone, the next run would refuse the others."""
    lines = "".join(
        f"{n % 11},{'?' if n % 9 == 0 else n % 7},{'NA' if n % 8 == 0 else 'abc'[n % 3]},{n % 2}\n" for n in range(80)
    )
    (folder / "t.csv").write_text(f"a,b,job,class\n{first},1,b,1\n{lines}")
    command = ["mine", "t.csv", "--target", "class", "--train", "gbm", "--clauses", "2", "--no-baselines"]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert f"say --na {first} --na '?' --na NA, say --kind a=category" in message
    assert main([*command, "--na", first, "--na", "?", "--na", "NA"]) == 0


def test_classes_that_are_codes_keep_their_zeros(folder, capsys):
    lines = "".join(f"{n},{n % 7},{'01' if n % 7 > 3 else '1' if n % 2 else ''}\n" for n in range(90))
    (folder / "t.csv").write_text(f"x,b,class\n{lines}")
    assert main(["mine", "t.csv", "--target", "class", "--train", "forest", "--clauses", "2", "--no-baselines"]) == 0
    assert load(folder / "model.gbfl.json").classes == ("01", "1")
    assert "rows have no class in 'class'" in capsys.readouterr().err


def test_classes_that_differ_in_blanks_or_capitals_are_named():
    labels = ["yes", "yes ", "No", "maybe"]
    table = pd.DataFrame({"x": range(80), "b": [n % 7 for n in range(80)], "y": [labels[n % 4] for n in range(80)]})
    notes = read_sample(table, Choice("y"), most=100).notes
    assert "classes 'yes', 'yes ' differ in blanks or capitals alone: if they are one, write them alike" in notes
