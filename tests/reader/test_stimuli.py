"""Tables of stimuli: rows, regions and sums."""

import gzip
import json
from pathlib import Path

import pytest

from dntm.corpus.document import InputError
from dntm.reader.reader import Reader
from dntm.reader.reading import WORD_COLUMNS
from dntm.reader.stimuli import MEASURES, StimulusConfig, summarize, without_marks

SENTENCES = ['She met "Ann", and left.', "The old man [[sat down]] at home."]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TAB = 'item\tsentence\n01\t"She met ""Ann"", and left."\n2\tThe old man [[sat down]] at home.\n'
SEMICOLON = TAB.replace("\t", ";")
COMMA = "\ufeff" + TAB.replace("\t", ",").replace("\n2", "\n\n2").replace("\n", "\r\n")
"""With a byte order mark, an empty line and Windows line endings."""
OBJECTS = "".join(
    json.dumps({"item": item, "sentence": text}) + "\n"
    for item, text in zip(("01", "2"), SENTENCES, strict=True)
)


@pytest.mark.parametrize("content", [COMMA, TAB, SEMICOLON, OBJECTS])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_kind_of_table_has_the_same_stimuli(
    tmp_path: Path, content: str, *, compressed: bool
) -> None:
    raw = content.encode()
    path = write(tmp_path / "table", gzip.compress(raw) if compressed else raw)

    stimuli = StimulusConfig(text_column=("sentence",)).read(path, "table")

    assert [s.values for s in stimuli] == [
        {"item": "01", "sentence": SENTENCES[0]},
        {"item": "2", "sentence": SENTENCES[1]},
    ]
    assert [s.texts for s in stimuli] == [
        ('She met "Ann", and left.',),
        ("The old man sat down at home.",),
    ]
    assert [s.regions for s in stimuli] == [({},), ({"1": range(3, 5)},)]


def test_cells_may_have_line_breaks_and_errors_name_the_first_line_of_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'text,item\n"She\nleft.",1\n"She\nsat.",2,3\nShe left.,4\n')
    skipped: list[str] = []

    stimuli = StimulusConfig(text_column=("text",)).read(path, "t.csv", skipped)

    assert [(s.number, s.texts[0]) for s in stimuli] == [(1, "She\nleft."), (3, "She left.")]
    assert skipped == ["t.csv, line 4: ['She\\nsat.', '2', '3'], expected the columns text, item"]


HEAD = "item,text\n"


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"", None, "no stimulus"),
        (HEAD, None, "no stimulus"),
        ("text,text\na,b\n", 1, "2 columns named 'text', expected unique names"),
        (",text\na,b\n", 1, "1 columns named '', expected"),
        ("item,word\n1,b\n", 1, "no column 'text', found item, word"),
        (HEAD + "1,a,b\n", 2, "['1', 'a', 'b'], expected the columns item, text"),
        (HEAD + "1, \n", 2, "column 'text' is ' ', expected a text"),
        (b"item,text\n1,a\n2,na\xefve\n", 3, "column 'text' is 'na\\udcefve', expected"),
        (HEAD.encode() + b"\xff,a\n", 2, "column 'item' is '\\udcff', expected UTF-8"),
        (b"S\xe4tze,text\n1,a\n", 1, "column 'S\\udce4tze', expected UTF-8"),
        (HEAD + '1,"a\n', 2, "unexpected end of data"),
        (HEAD + '1,"a" b\n', 2, "expected after '\"'"),
        ('{"text": "a"}\n{"test": "a"}\n', 2, "{'test': 'a'}, expected the columns text"),
        ('{"text": "a"}\n[1]\n', 2, "[1], expected the columns text"),
        ('{"text": "a"}\n{"text": \n', 2, "Expecting value"),
        ('{"text": null}\n', 1, "column 'text' is None, expected a text"),
        ("\n \n" + HEAD + "1,\n", 4, "column 'text' is '', expected a text"),
        (
            "item,text\r\n1,a\r\n".encode("utf-16"),
            1,
            "UTF-16, or line ends without a line feed, expected CSV",
        ),
        ("item,text\r1,a\r", 1, "expected CSV in UTF-8"),
        (HEAD + "1,\u200b\n", 2, "column 'text' is '\\u200b', expected a text"),
        (HEAD + "1,the [[old man sat\n", 2, "marks [[ in 'the [[old man sat', expected [[ ... ]]"),
        (HEAD + "1,[[\u115f]]\ufe0f\n", 2, "expected a text"),
        (HEAD + "1,a [[]] b\n", 2, "region '' in 'a [[]] b', expected words, each in"),
        (HEAD + "1,the [[o]][[ld]] man\n", 2, "region 'ld'"),
    ],
)
def test_errors_name_file_line_and_value(
    tmp_path: Path, content: str | bytes, line: int | None, problem: str
) -> None:
    path = write(tmp_path / "t", content)

    with pytest.raises(InputError) as caught:
        StimulusConfig(text_column=("text",)).read(path, "my.csv")

    assert str(caught.value).startswith(f"my.csv, line {line}: " if line else "my.csv: ")
    assert problem in str(caught.value)


def test_a_column_holds_the_words_of_a_region_or_nothing(tmp_path: Path) -> None:
    content = "text,verb\nThey stare at areas and are home.,are\nShe left.,\n"
    path = write(tmp_path / "t.csv", content)
    config = StimulusConfig(text_column=("text",), region_column="verb")

    stimuli = config.read(path, "t.csv")

    assert [s.regions[0] for s in stimuli] == [{"verb": range(5, 6)}, {}]
    write(path, 'text,verb\n"Then, he left.",", he"\n')
    assert config.read(path, "t.csv")[0].regions[0] == {"verb": range(2)}
    for text, problem in (
        ("are are,are", "'are' occurs 2 times"),
        ("She left.,are", "'are' occurs 0 times in 'She left.', expected once"),
        ("[[She]] left.,left", "2 regions in '[[She]] [[left]].', expected ['verb']"),
    ):
        write(path, f"text,verb\n{text}\n")
        with pytest.raises(InputError) as caught:
            config.read(path, "t.csv")
        assert problem in str(caught.value)


def test_regions_are_given_in_one_way() -> None:
    with pytest.raises(ValueError, match="expected one of them"):
        StimulusConfig(region_column="verb", region_names="names")


def test_a_column_names_the_marked_regions(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "text,names\n[[The man]] [[sat]] down.,subject verb\n")
    config = StimulusConfig(text_column=("text",), region_names="names")

    [stimulus] = config.read(path, "t.csv")

    assert stimulus.regions == ({"subject": range(2), "verb": range(2, 3)},)
    for names in ("subject", "verb verb"):
        write(path, f"text,names\n[[The man]] [[sat]] down.,{names}\n")
        with pytest.raises(InputError, match="2 regions in"):
            config.read(path, "t.csv")


def test_a_region_has_every_word_with_a_marked_character() -> None:
    text, regions = without_marks("He s[[at do]]wn[[ at ]]the ta[[ble]].")

    assert text == "He sat down at the table."
    assert regions == [range(1, 3), range(3, 4), range(5, 6)]


def test_sums_over_regions_are_those_of_the_word_rows(reader: Reader) -> None:
    text, [first, second] = without_marks("The old [[man met]] Ann. He [[sat]] down.")
    reading = reader.read(text)

    sums = summarize(reading, {"a": first, "b": second})

    rows = [dict(zip(WORD_COLUMNS, row, strict=True)) for row in reading.word_rows()]
    for measure in MEASURES:
        values = [float(str(row[measure] or 0)) for row in rows]
        assert sums[f"region_a_{measure}"] == pytest.approx(values[2] + values[3])
        assert sums[f"region_b_{measure}"] == pytest.approx(values[6])
    assert (sums["words"], sums["region_a_words"], sums["region_b_words"]) == (8, 2, 1)
    assert sums["surprisal"] == pytest.approx(reading.surprisal)
    assert sums["static_surprisal"] == pytest.approx(reading.static_surprisal)
