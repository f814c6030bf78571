"""Reading with a pretrained core."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float

from dntm.cli.read import text_lines
from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import NOBODY, DocumentRows, SentenceStrings
from dntm.corpus.vocabulary import BOS, entity_rows
from dntm.model.base_model import load_base
from dntm.model.checkpoint import from_pretrained, save_pretrained
from dntm.model.language_model import DynamicTextModel
from dntm.model.parameters import State
from dntm.model.scorer import Scorer, first_rows
from dntm.model.spelling import MENTIONS, FormShares, Spelling, Words
from dntm.model.strings import fit_pieces, score_strings
from dntm.reader.comparison import compare
from dntm.reader.engine import next_token
from dntm.reader.reader import Reader
from tests.model.tiny_base import build, write_base

pytest.importorskip("transformers")


@pytest.fixture(scope="module", name="adapter")
def _adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = load_base(str(write_base(tmp_path_factory.mktemp("base"))))
    folder = tmp_path_factory.mktemp("run") / "adapter"
    save_pretrained(build(base).float(), base.vocabulary(3), folder)
    return folder


def test_each_word_has_the_surprisal_of_its_pieces(adapter: Path) -> None:
    reader = Reader.from_pretrained(adapter)

    reading = reader.read("The old heron saw Orla. Then Orla ate the fish.", unit="nats")

    tokens = reading.tokens
    assert [t.word for t in tokens] == "The old heron saw Orla . Then Orla ate the fish .".split()
    assert [tokens[4].entity, tokens[7].entity] == [1, 1]
    document = AnonymizedDocument(
        name="orla",
        sentences=[["The", "old", "heron", "saw", 1, "."], ["Then", 1, "ate", "the", "fish", "."]],
    )
    [scores] = Scorer(*from_pretrained(adapter)).score([document])
    assert [-t.surprisal for t in tokens] == pytest.approx(scores.tolist(), abs=1e-4)


def test_predicted_words_are_those_expected_instead_of_the_mentions(adapter: Path) -> None:
    reader = Reader.from_pretrained(adapter)
    model, words = reader.models.dynamic, reader.vocabulary
    text = "The heron saw Orla. Then Orla saw the heron."

    reading = reader.read(text)
    streamed = [*reader.stream(text)]

    def log_p(before: str, *prefix: str) -> torch.Tensor:
        rows = [BOS, *(row for pieces in words.rows_of(prefix) for row in pieces)]
        return next_token(model, reader.position(before).states.dynamic, rows)

    typical, static = torch.zeros(len(words)), build(load_base(model.config.core), "baseline")
    pieces = range(ENTITIES.stop, len(words))
    for piece in pieces:  # fewer than are sampled from a larger vocabulary
        typical += next_token(static.float(), static.initial_state(1), [BOS, piece]) / len(pieces)
    expected = log_p("", "The", "heron", "saw"), log_p("The heron saw Orla.", "Then")
    score = (expected[0] + expected[1]) / 2 - typical / 2
    own = {row for token in text.split() for [row, *_] in words.rows_of([token.strip(".")])}
    rows = [row for row in reader.meanings.spaces["output"].rows.tolist() if row not in own]
    p = dict(zip(rows, score[rows].softmax(0).tolist(), strict=True))
    best = sorted(rows, key=lambda row: -p[row])[:8]
    found = reading.trail(1)[1][1].predicted_words
    assert [near.word for near in found] == [words.label(row).strip("\u0120") for row in best]
    assert [near.probability for near in found] == pytest.approx([p[r] for r in best], rel=1e-3)
    again = streamed[1].entities[0].predicted_words
    assert [near.probability for near in again] == pytest.approx([p[r] for r in best], rel=1e-3)
    assert "after sentence 2" in "\n".join(text_lines(reading, color=False))


def test_gaps_and_ranks_are_refused(adapter: Path) -> None:
    reader = Reader.from_pretrained(adapter)

    with pytest.raises(ValueError, match="one row per word"):
        reader.fill("It ate the [] .", "The heron saw Orla.")
    with pytest.raises(ValueError, match="one row per word"):
        reader.token_score("It ate the zorks.", rank=True)


def test_readers_in_different_precisions_share_a_base_model(adapter: Path) -> None:
    double, single = (Reader.from_pretrained(adapter, precision=p) for p in ("double", "single"))

    found = [r.read("The heron saw Orla.").surprisal for r in (double, single, double)]

    assert found[0] == found[2] == pytest.approx(found[1], rel=1e-4)


SHARES, ENDS = FormShares(0.4, 0.3, 0.2, 0.1), 0.4
STORY = """The heron saw Orla Zed. Then Orla ate it. Bo slept. Bo saw (Orla Zed) and Mo.
Kim saw Bo\n\nMo saw Orla. Mo and Kim slept."""
ENTITIES = entity_rows(3)


@pytest.fixture(scope="module", name="speller")
def _speller(adapter: Path) -> Iterator[Reader]:
    Spelling({}, 0.5, [SHARES] * (1 + len(MENTIONS)), ENDS).save(adapter)
    load_base.cache_clear()  # this reader changes the base model to double precision
    yield Reader.from_pretrained(adapter, precision="double")
    (adapter / "spelling.json").unlink()
    load_base.cache_clear()


def plain_r(known: Sequence[Words], wanted: Words, *, whole: bool) -> float:
    """The share of the forms of an entity."""
    same = [(form if whole else form[: len(wanted)]) == wanted for form in known]
    words = {word for form in known for word in form}
    is_word = len(wanted) == 1 and wanted[0] in words
    parts = (sum(same) / len(known), same[-1], is_word / len(words))
    return sum(share * part for share, part in zip(SHARES, parts, strict=False))


def plain_surprisals(reader: Reader, model: DynamicTextModel, text: str) -> list[list[float]]:
    """The surprisal of every word of every token, as a plain loop over pieces and forms."""
    state, slots, end = model.initial_state(1), reader.engine.slots(), 0.0
    found, forms, occupant = [], dict[int, list[Words]](), dict[int, int]()
    for sentence in reader.prepare(text).sentences:
        encoded = reader.engine.encode([[word.token for word in sentence]], slots)
        [rows], [evictions], [widths] = encoded.sentences, encoded.evictions, encoded.widths
        pieces = reader.vocabulary.rows_of([w for word in sentence for w in word.words])
        each = iter(list(pieces))
        for word, place in zip(sentence, first_rows(widths).tolist(), strict=True):
            here = [e for e in evictions if e.position <= place]
            occupant |= {e.slot: 0 for e in here if e.position == place and e.entity == NOBODY}
            read, log_p, log_q = list(rows[: place + 1]), 0.0, -math.log(1 - ENDS)
            first = next_token(model, state, read, here)[ENTITIES].exp().tolist()
            totals = []
            for n in range(1, len(word.words) + 2):
                whole = n > len(word.words)
                log_q += math.log(ENDS) if whole else 0
                for piece in () if whole else next(each):
                    p = next_token(model, state, read, here)
                    log_p += float(p[piece])
                    log_q += float(p[piece] - p[ENTITIES.stop :].logsumexp(0)) + math.log(1 - ENDS)
                    read.append(piece)
                q, total = math.exp(log_q), math.exp(log_p)
                for slot, share in enumerate(first, start=1):
                    known = forms.get(occupant.get(slot, 0), [])
                    r = plain_r(known, tuple(word.words[:n]), whole=whole) if known else 0
                    total += share * (r + (SHARES.new if known else 1) * q)
                totals.append(math.log(total))
            found.append([a - b for a, b in zip([end, *totals], totals[:-1], strict=False)])
            end = totals[-2] - totals[-1]
            if isinstance(word.token, int):
                forms.setdefault(word.token, []).append(tuple(word.words))
                occupant[rows[place + 1] - ENTITIES.start + 1] = word.token
        occupant = {slot: slots.occupant(slot) for slot in occupant}
        _, state = model.score(model.plan([[rows]], evictions=[[evictions]]), state)
    return found


def test_strings_have_the_surprisals_of_a_plain_loop(speller: Reader) -> None:
    tokens = speller.read(STORY, unit="nats").tokens

    assert sum(token.entity > 0 for token in tokens) == 14
    for column, model in ((1, speller.models.dynamic), (2, speller.models.static)):
        expected = plain_surprisals(speller, model, STORY)
        for token, nats in zip(tokens, expected, strict=True):
            assert [part[column] for part in token.parts] == pytest.approx(nats, abs=1e-9)


def test_texts_in_a_batch_and_in_a_stream_have_the_same_surprisals(speller: Reader) -> None:
    alone = speller.read(STORY).tokens
    _, batch = speller.read_all(["Bo ate. Zed slept. Bo saw Zed.", STORY])
    stream = [token for sentence in speller.stream(STORY) for token in sentence.tokens]

    for other in (batch.tokens, stream):
        assert [t.surprisal for t in other] == pytest.approx([t.surprisal for t in alone], abs=1e-9)


def test_an_open_vocabulary_counts_every_word_of_a_name(speller: Reader) -> None:
    sentences: list[list[Token]] = [["it", "saw", 1], [1, "slept"]]
    surfaces = [["Orla", "Zed"], ["Orla"]]
    document = AnonymizedDocument(name="x", sentences=sentences, surfaces=surfaces)

    scores = compare(speller, [document])

    assert scores["model"]["words"] == 6
    assert scores["model"]["nats_per_word"] != pytest.approx(scores["static"]["nats_per_word"])


def spelled(
    model: DynamicTextModel, state: State, strings: Sequence[list[int]]
) -> list[Float[np.ndarray, "2 2"]]:
    """The probabilities of these pieces as words and under q: of the beginning and the whole."""
    row, n = ENTITIES.start, len(strings)
    texts = [
        DocumentRows(
            [[BOS, row]],
            [[]],
            [[1]],
            [SentenceStrings([1], [("x",)], [BOS, row], [row], [], [[pieces]])],
        )
        for pieces in strings
    ]
    scores = score_strings(model, texts, state.select([0] * n)).rows
    return [np.exp([own.pieces[0].words(), own.pieces[0].q(ENDS)]) for own in scores]


def test_pieces_sum_to_one(speller: Reader) -> None:
    model = speller.models.dynamic
    state = speller.position("The heron saw Orla. Then Orla slept.").states.dynamic
    pieces = range(ENTITIES.stop, len(speller.vocabulary))

    one = np.sum(spelled(model, state, [[piece] for piece in pieces]), axis=0)
    start = pieces[100]
    [begins] = spelled(model, state, [[start]])
    two = np.sum(spelled(model, state, [[start, piece] for piece in pieces]), axis=0)

    entities = float(next_token(model, state, [BOS])[ENTITIES].exp().sum())
    assert one[0].tolist() == pytest.approx([1 - entities] * 2)
    assert one[1].tolist() == pytest.approx([1, ENDS])
    assert two[1, 0] + begins[1, 1] == pytest.approx(begins[1, 0])


def test_without_entities_strings_have_the_surprisals_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    base = load_base(str(write_base(tmp_path / "base")))
    model = build(base).float()
    with torch.no_grad():
        model.terms["entity-rows"].get_parameter("b").fill_(-1e4)
    save_pretrained(model, base.vocabulary(3), tmp_path / "model")
    Spelling({}, 0.5, [SHARES] * (1 + len(MENTIONS)), ENDS).save(tmp_path / "model")
    reading = Reader.from_pretrained(tmp_path / "model", precision="double").read(
        "It rained. The old heron saw Orla Zed", unit="nats"
    )

    plain = AutoModelForCausalLM.from_pretrained(base.name, dtype=torch.float64).requires_grad_(
        requires_grad=False
    )
    written = " It, rained,., The, old, heron, saw, Orla, Zed".split(",")
    pieces = [base.divide(word) for word in written]
    ids = [base.start, *(piece for own in pieces for piece in own)]
    log_p = plain(torch.tensor([ids])).logits[0].log_softmax(1)[range(len(ids) - 1), ids[1:]]
    expected = [-float(own.sum()) for own in torch.split(log_p, list(map(len, pieces)))]
    assert reading.tokens[-1].word == "Orla Zed"
    found = [part[1] for token in reading.tokens for part in token.parts]
    assert found == pytest.approx(expected, abs=1e-9)
    load_base.cache_clear()


def test_the_weights_of_pieces_are_learned(adapter: Path) -> None:
    model, vocabulary = from_pretrained(adapter)
    sentences: list[list[Token]] = [[1, "saw", "it"], [1, "ate", 2], [1, "slept"], [2, "swam"]]
    surfaces = [["Orla", "Zed"], ["Zed"], ["Bo"], ["Zed"], ["Bo"]]
    document = AnonymizedDocument(name="x", sentences=sentences, surfaces=surfaces)

    found = fit_pieces(model.double(), vocabulary, [document] * 30)

    names = sum(map(len, vocabulary.rows_of(["Orla", "Zed", "Bo"])))
    assert found.ends == pytest.approx(61 / (30 * names + 2))
    assert found.shares[0].new < 0.05
    assert found.shares[0].word > 0.3
