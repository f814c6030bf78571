"""BLiMP and LAMBADA on tiny files, against the surprisals of the reader."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import blimp, lambada, names
from dntm.cli.texts import ModelOptions, ReaderOptions
from dntm.corpus.document import InputError
from dntm.model.spelling import MENTIONS, FormShares, Spelling
from dntm.reader.reader import Reader
from dntm.reader.text import Word
from tests.cli.running import Capture
from tests.reader.small import LOWER, checkpoint

PAIRS = [
    ("one", "island", "syntax", "The man sat down.", "The man sat river."),
    ("one", "island", "syntax", "Ann met the old man.", "Ann met old the man."),
    ("two", "agreement", "morphology", "He left.", "Left he."),
    ("two", "agreement", "morphology", "She kept a zork.", "A zork she kept."),
    ("two", "agreement", "morphology", "He left.", "He left."),
]
KEYS = ("UID", "linguistics_term", "field", "sentence_good", "sentence_bad")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a spelling; in its training text, "river" is more often a name than a word."""
    counts = [9] * len(LOWER)
    counts[LOWER.row("river")] = 2
    folder = checkpoint(
        tmp_path_factory.mktemp("model") / "d", vocabulary=replace(LOWER, counts=counts)
    )
    shares = [FormShares(0.4, 0.3, 0.1, 0.2)] * (1 + len(MENTIONS))
    Spelling({"ann": 3, "old bo": 2, "river": 5, "man": 4}, 0.5, shares).save(folder)
    return folder


def test_a_pair_is_correct_if_the_acceptable_sentence_is_more_likely(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    lines = (json.dumps(dict(zip(KEYS, pair, strict=True))) for pair in PAIRS)
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    options = ReaderOptions(model=model, precision="double", entities=("unknown",))
    given = blimp.BlimpOptions(
        pairs=tmp_path / "pairs.jsonl", json=tmp_path / "found.json", options=options
    )

    blimp.main(given)

    reader = Reader.from_pretrained(model)
    found = json.loads((tmp_path / "found.json").read_text())
    for name in ("surprisal", "static_surprisal"):
        right = []
        for *_, good, bad in PAIRS:
            read = [reader.read(text, entities=("unknown",)) for text in (good, bad)]
            one, other = (sum(getattr(t, name) for t in r.tokens) for r in read)
            right.append(other > one and good != bad)
        key = "model" if name == "surprisal" else "static"
        assert found["overall"]["all"][key] == pytest.approx(sum(right) / 5)
        assert found["linguistics_term"]["agreement"][key] == pytest.approx(sum(right[2:]) / 3)
        assert found["field"]["syntax"][key] == pytest.approx(sum(right[:2]) / 2)
    assert found["UID"]["two"]["pairs"] == 3
    assert "LSTM, 90M words 0.698" in capsys.readouterr().out
    sample = blimp.read_pairs(given.pairs, 1, 0)
    assert [pair.values["UID"] for pair in sample] == ["one", "two"]


def test_passages_are_divided_into_sentences_and_words() -> None:
    line = "`` he left ? '' she sat at the ice-river . ann met bo ."

    asked = lambada.passage_of([*line.split(), "then"])
    inside = lambada.passage_of(line.split()[:-1])

    first, second = ['"', "he", "left", "?", '"'], "she sat at the ice - river .".split()
    assert asked == ([first, second, "ann met bo .".split(), []], "then")
    assert inside == ([first, second, ["ann", "met"]], "bo")


def test_the_answer_is_ranked_by_the_surprisal_of_its_string(model: Path) -> None:
    reader = Reader.from_pretrained(model)
    ranked = lambada.Lambada(reader)
    context = [["the", "river", "met", "zork", "."], ["the", "man", "left", "the"]]
    prepared = ranked.prepare(lambada.Passage(context, ""))
    entities = {word.words[0]: word.token for word in prepared.mentions()}
    candidates = [*LOWER.words, "zork"]
    texts = []
    for word in candidates:
        *sentences, last = prepared.sentences
        own = Word(entities.get(word, word), (word,))
        texts.append(replace(prepared, sentences=[*sentences, [*last, own]]))

    found = ranked.ranks([lambada.Passage(context, word) for word in [*candidates, "gork"]])

    assert entities == {"river": 1, "zork": 2}
    tokens = [reading.tokens[-2] for reading in reader.read_all(texts, meanings=False)]
    for place, name in enumerate(("surprisal", "static_surprisal")):
        values = [getattr(token, name) for token in tokens]
        expected = [1 + sum(v < own - 1e-9 for v in values) for own in values]
        assert [ranks[place] for ranks in found] == [*expected, float("inf")]


def test_accuracies_are_those_of_the_ranks(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "passages.txt"
    path.write_text("the man sat down\n\nann met the old river . ann\nhe left gork\n")

    options = lambada.LambadaOptions(passages=path, options=ModelOptions(model=model))
    found = lambada.measure(options)

    ranks = lambada.Lambada(Reader.from_pretrained(model)).ranks(lambada.read_passages(path))
    assert (found["passages"], found["candidates"]) == (3, pytest.approx(2 / 3))
    for place, name in enumerate(("model", "static")):
        right = sum(own[place] <= 10 for own in ranks)
        assert found[name]["at 10"] == pytest.approx(right / 3)
    assert lambada.measure(replace(options, sample=2))["passages"] == 2
    path.write_text("river\n")
    with pytest.raises(InputError, match="line 1: found 'river', expected a passage"):
        lambada.read_passages(path)


def test_first_mentions_are_compared_with_their_frequency(model: Path, tmp_path: Path) -> None:
    (tmp_path / "held.txt").write_text("Then Ann met Zork. So Ann left.\n\nThen Ann left.\n")
    options = ReaderOptions(model=model, entities=("names", "unknown"), precision="double")
    given, path = (tmp_path / "held.txt",), tmp_path / "found.json"

    names.main(names.NameOptions(texts=given, counted=given, json=path, options=options))

    found, text = json.loads(path.read_text()), "Then Ann met Zork. So Ann left."
    [again] = [t for t in Reader.from_pretrained(model).read(text).tokens if t.occurrence == 2]
    assert (found["first_mentions_mentions"], found["names"]) == (3, 3)
    assert found["reappearing_bits"] == pytest.approx(again.surprisal)
