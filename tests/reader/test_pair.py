from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.scorer import Scorer
from dntm.reader.reader import Reader
from tests.reader.small import DOCUMENT, PREPARED, VOCABULARY, WORDS, checkpoint, surprisals


def test_the_default_static_model_is_the_model_with_empty_memory(any_reader: Reader) -> None:
    model = any_reader.models.dynamic
    state, expected = model.initial_state(1), []
    for sentence in encode(DOCUMENT, VOCABULARY).sentences:
        [scores], after = model.score(model.plan([[sentence]]), state)
        expected += (-scores).tolist()
        state = after._replace(memory=model.initial_state(1).memory)

    reading = any_reader.read(PREPARED, unit="nats")

    np.testing.assert_allclose(surprisals(reading, static=True), expected, atol=1e-12)
    same = np.allclose(surprisals(reading, static=True), surprisals(reading))
    assert same == (model.config.variant == "baseline")


@pytest.mark.parametrize("inside", [True, False])
def test_the_static_model_is_the_baseline_given_or_found_in_the_checkpoint(
    tmp_path: Path, *, inside: bool
) -> None:
    folder = checkpoint(tmp_path / "d")
    baseline = checkpoint(tmp_path / ("d/static" if inside else "a"), "baseline", seed=3)
    model = Scorer.load(baseline)
    model.model.double()
    [expected] = model.score([DOCUMENT])

    reader = Reader.from_pretrained(folder, None if inside else baseline)

    found = surprisals(reader.read(PREPARED, unit="nats"), static=True)
    np.testing.assert_allclose(found, -expected, atol=1e-12)


def test_a_static_model_must_be_a_baseline_over_the_same_words(
    trained: Path, tmp_path: Path
) -> None:
    foreign = Vocabulary(tuple(reversed(WORDS)), entities=4)
    checkpoint(tmp_path / "foreign", "baseline", vocabulary=foreign)

    with pytest.raises(ValueError, match="'both', expected a baseline"):
        Reader.from_pretrained(trained, trained)
    with pytest.raises(ValueError, match="foreign and the dynamic model have different"):
        Reader.from_pretrained(trained, tmp_path / "foreign")


def test_without_a_bundled_model_there_is_no_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dntm.files.BUNDLED", tmp_path / "pretrained")

    with pytest.raises(ValueError, match="no model given, and this installation has no"):
        Reader.from_pretrained()
