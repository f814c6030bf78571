"""A pretrained core against a plain loop over sentences, on a tiny random Llama."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import UNK, entity_rows
from dntm.model.base_model import BaseModel, EntityRows, load_base
from dntm.model.checkpoint import from_pretrained, save_pretrained, write_checkpoint
from dntm.model.config import Variant
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_core import CoreMemory, PretrainedCore, ReadOn, Unread
from dntm.model.scorer import Scorer
from dntm.training.processes import matmul_precision
from tests.model.small import backward, score
from tests.model.tiny_base import build, write_base

pytest.importorskip("transformers")

DOCUMENT = AnonymizedDocument(
    name="pond",
    sentences=[
        ["the", "old", "heron", 1, "saw", 2, "."],
        [1, "ate", "the", "small", "fish", ",", "and", 2, "swam", "away"],
        [],
        ["it", "rained"],
        [2, "saw", 1, "(", "the", "heron", ")", "and", 1, "slept"],
    ],
)
VARIANTS: tuple[Variant, ...] = ("baseline", "input", "output", "both")


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(name="base")
def _base(folder: Path) -> Iterator[BaseModel]:
    """The base model in double precision; other tests get it as it was."""
    yield load_base(str(folder))
    load_base.cache_clear()


def plain_scores(
    model: DynamicTextModel, base: BaseModel, document: AnonymizedDocument
) -> list[float]:
    """Log-probabilities of all rows; every state is computed from the beginning of the document."""
    rows, entities = encode(document, base.vocabulary(3)), entity_rows(3)
    decoder, memory = base.decoder.double(), model.memory
    output = model.terms["entity-rows"]
    assert isinstance(output, EntityRows)
    d: dict[int, torch.Tensor] = {}
    x, scores = [base.x[base.start].double()], []
    y = torch.cat((torch.zeros(entities.stop, base.y.shape[1]), base.y)).double()

    def states(layer: int = -1) -> torch.Tensor:
        output = decoder(inputs_embeds=torch.stack(x)[None], output_hidden_states=True)
        found: torch.Tensor = output.hidden_states[layer][0]
        return found

    for sentence in rows.sentences:
        mentions = []
        for row in sentence[1:]:
            h = states()[-1]
            logits = y @ h
            logits[: entities.start] = -torch.inf
            for e in range(3):
                own = output.weight[e]
                if e in d and model.W_dy is not None:
                    own = own + model.W_dy @ d[e]
                logits[entities.start + e] = own @ h + output.b[e]
            scores.append(float(logits.log_softmax(0)[row]))
            if entities.start <= row < entities.stop:
                e = row - entities.start
                mentions.append((len(x) - 1, e))
                token = model.x.get_parameter("own")[e] + model.x.get_parameter("shared")
                if e in d and model.x.W_dx is not None:
                    token = token + model.x.W_dx @ d[e]
            else:
                token = base.x[row - entities.stop].double()
            x.append(token)
        if isinstance(memory, CoreMemory) and memory.merging is not None:
            g, merger = states(round(base.layers * 2 / 3)), memory.merging.bind()
            for before, e in mentions:
                pair = torch.cat((unit(g[before]), unit(g[-1])))
                context = torch.relu(memory.W_hd @ pair + memory.b_d)[None]
                previous = d.get(e, memory.merging.initial(context))[None]
                d[e] = merger.merge(merger.inputs(context), previous)[0]
    return scores


def unit(h: torch.Tensor) -> torch.Tensor:
    return h / (h.square().mean() + torch.finfo(h.dtype).eps).sqrt()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_scores_equal_those_of_a_plain_loop(base: BaseModel, variant: Variant, size: int) -> None:
    model, rows = build(base, variant), encode(DOCUMENT, base.vocabulary(3)).sentences

    with torch.no_grad():
        expected = plain_scores(model, base, DOCUMENT)

    assert score(model, [rows], size)[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_pass_with_gradients_has_the_same_values(base: BaseModel, variant: Variant) -> None:
    model, rows = build(base, variant), encode(DOCUMENT, base.vocabulary(3)).sentences
    window = model.plan([rows, rows[:2]])
    scores, _ = model.score(window, model.initial_state(2))

    nats, _ = model.loss(window, model.initial_state(2))
    backward(nats)

    assert float(nats.detach()) == pytest.approx(-sum(map(np.sum, scores)), abs=1e-9)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_training_in_bfloat16_is_close_to_single_precision(base: BaseModel) -> None:
    model, rows = build(base).float(), encode(DOCUMENT, base.vocabulary(3)).sentences
    window = model.plan([rows])

    exact = float(model.train().loss(window, model.initial_state(1))[0].detach())
    scores = score(model.eval(), [rows], 9)[0]
    with matmul_precision("medium"):
        rounded = float(model.train().loss(window, model.initial_state(1))[0].detach())
        again = score(model.eval(), [rows], 9)[0]

    assert rounded != pytest.approx(exact, rel=1e-5)
    assert rounded == pytest.approx(exact, rel=0.02)
    assert again == pytest.approx(scores, abs=0.02)


def test_with_frozen_inputs_a_dynamic_output_is_learned_in_one_pass(
    base: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = build(base, "output"), encode(DOCUMENT, base.vocabulary(3)).sentences
    calls, read = [], PretrainedCore.read

    def counted(core: PretrainedCore, unread: Sequence[Unread]) -> list[ReadOn]:
        calls.append(len(unread))
        return read(core, unread)

    monkeypatch.setattr(PretrainedCore, "read", counted)
    found = []
    for learned in (True, False):
        model.zero_grad()
        model.x.requires_grad_(learned)
        nats, after = model.loss(model.plan([rows[:3]]), model.initial_state(1))
        nats = nats + model.loss(model.plan([rows[3:]]), after.after)[0]
        backward(nats)
        gradients = [p.grad.clone() for p in model.memory.parameters() if p.grad is not None]
        found.append(torch.cat([g.flatten() for g in (nats.detach(), *gradients)]))

    assert found[0].tolist() == pytest.approx(found[1].tolist(), abs=1e-9)
    assert len(calls) == 6, "twice per window, and once if the inputs are frozen"


def test_at_first_the_memory_changes_nothing(base: BaseModel) -> None:
    rows = encode(DOCUMENT, base.vocabulary(3)).sentences
    found = []
    for variant in ("baseline", "both"):
        config = replace(build(base).config, variant=variant)
        model = DynamicTextModel(config, torch.Generator().manual_seed(1)).double().eval()
        with torch.no_grad():  # random draws differ between the variants
            for name in ("x.own", "terms.entity-rows.own"):
                model.get_parameter(name).fill_(0.1)
        found.append(score(model, [rows], 9)[0])

    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_a_word_has_the_probability_of_all_its_pieces(base: BaseModel) -> None:
    model, vocabulary = build(base), base.vocabulary(3)
    rows = encode(DOCUMENT, vocabulary)
    [pieces] = score(model, [rows.sentences], 9)

    [words] = Scorer(model, vocabulary).score([DOCUMENT])

    assert len(words) == sum(map(len, DOCUMENT.sentences)) < len(pieces)
    assert float(words.sum()) == pytest.approx(sum(pieces))


def test_extensions_score_the_same_in_windows_of_any_size(base: BaseModel) -> None:
    extensions = ("salience", "unseen-pooling", "pointer")
    model, rows = build(base, extensions=extensions), encode(DOCUMENT, base.vocabulary(3)).sentences

    assert score(model, [rows], 1)[0] == pytest.approx(score(model, [rows], 9)[0], abs=1e-10)


def test_a_pointer_compares_h_with_the_learned_embeddings_of_entities(base: BaseModel) -> None:
    model, document = build(base, "baseline", extensions=("pointer",)), DOCUMENT.sentences[:2]
    rows = encode(AnonymizedDocument(name="", sentences=document), base.vocabulary(3)).sentences
    words = base.x[[row - 6 for sentence in rows for row in sentence if row >= 6]].double()
    term, x_e = model.terms["pointer"], model.x(torch.tensor([3])).detach()[0]
    apart = x_e - words.T @ torch.linalg.pinv(words.T) @ x_e

    def score_of_copy(weight: float) -> float:
        for name, value in (("W_v", torch.zeros(16, 16)), ("v", weight * apart)):
            term.get_parameter(name).data.copy_(value)
        return score(model, [rows], 9)[0][len(rows[0]) - 1]

    assert score_of_copy(4 / float(apart @ apart)) > score_of_copy(0.0) + 0.1


def test_single_words_have_the_rows_that_they_are_read_with(base: BaseModel) -> None:
    vocabulary = base.vocabulary(3)

    for word in ("heron", "the", "xyzzy", "[1]"):
        [pieces] = vocabulary.rows_of([word])
        assert vocabulary.row(word) == (pieces[0] if len(pieces) == 1 else UNK)
    assert vocabulary.row("heron") != vocabulary.row("xyzzy") == UNK


def test_a_mention_without_a_row_is_read_as_a_pronoun(base: BaseModel) -> None:
    vocabulary = base.vocabulary(3)
    crowd = AnonymizedDocument(name="", sentences=[[1, "saw", 2, ",", 3, "and", 4, "."]])

    [scores] = Scorer(build(base).float(), vocabulary).score([crowd])

    assert len(scores) == 8
    assert float(scores.min()) > -100


def test_the_memory_can_be_left_out(base: BaseModel) -> None:
    model, rows = build(base), encode(DOCUMENT, base.vocabulary(3)).sentences

    static = model.without(["memory"])

    assert static.parts == tuple(p for p in model.parts if p in static.config.extensions)
    assert score(static, [rows], 2) != score(model, [rows], 2)


def test_an_adapter_holds_only_what_was_learned(base: BaseModel, tmp_path: Path) -> None:
    model = build(base).float()
    save_pretrained(model, base.vocabulary(3), tmp_path / "adapter")
    loaded, vocabulary = from_pretrained(tmp_path / "adapter")

    before, after = (
        next(Scorer(m, v).score([DOCUMENT]))
        for m, v in ((model, base.vocabulary(3)), (loaded, vocabulary))
    )
    assert np.array_equal(before, after)
    size = (tmp_path / "adapter" / "model.safetensors").stat().st_size
    assert size < 4 * sum(p.numel() for p in model.parameters()) + 4000
    assert not (tmp_path / "adapter" / "vocab.txt").exists()


def test_an_adapter_is_written_next_to_its_static_baseline(base: BaseModel, tmp_path: Path) -> None:
    model, vocabulary = build(base).float(), base.vocabulary(3)
    for folder in (tmp_path, tmp_path / "static"):
        folder.mkdir(exist_ok=True)
        write_checkpoint(model, vocabulary, folder, beside=None if folder == tmp_path else model)

    loaded, _ = from_pretrained(tmp_path / "static")

    assert all(p.equal(q) for p, q in zip(model.parameters(), loaded.parameters(), strict=True))


def test_an_adapter_is_refused_on_other_weights(tmp_path: Path) -> None:
    base = load_base(str(write_base(tmp_path / "base")))
    save_pretrained(build(base).float(), base.vocabulary(3), tmp_path / "adapter")

    write_base(tmp_path / "base", seed=8)
    load_base.cache_clear()
    with pytest.raises(ValueError, match="trained on other weights"):
        from_pretrained(tmp_path / "adapter")

    path = write_base(tmp_path / "base") / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    words = tokenizer["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    load_base.cache_clear()
    with pytest.raises(ValueError, match="other weights or pieces"):
        from_pretrained(tmp_path / "adapter")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected lstm, transformer, or the folder"):
        load_base(str(tmp_path))


def test_base_models_that_would_be_read_differently_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = import_module("transformers")
    load = transformers.AutoModelForCausalLM.from_pretrained

    def scaled(*place: Any, **options: Any) -> Any:
        model = load(*place, **options)
        model.get_input_embeddings().register_forward_hook(lambda *call: 3 * call[2])
        return model

    with pytest.raises(ValueError, match="divides single words differently"):
        load_base(str(write_base(tmp_path / "blank", adds_blank=True)))
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", scaled)
    with pytest.raises(ValueError, match="entities cannot be added"):
        load_base(str(write_base(tmp_path / "scaled")))


def test_states_share_what_was_read_and_have_a_last_position(base: BaseModel) -> None:
    model, rows = build(base), encode(DOCUMENT, base.vocabulary(3)).sentences
    _, one = model.score(model.plan([rows[:2]]), model.initial_state(1))
    _, two = model.score(model.plan([rows[2:4]]), one)

    parts = [state.core.documents[0].keys for state in (one, two)]
    assert len(parts[1]) > len(parts[0])
    assert all(early is late for early, late in zip(*parts, strict=False))
    assert isinstance(model.core, PretrainedCore)
    model.core.base = replace(base, positions=sum(map(len, rows[:4])) - 4)
    with pytest.raises(ValueError, match="pieces or more, but the base model reads at most"):
        model.score(model.plan([rows[4:]]), two)


def test_blanks_stand_where_english_text_has_them(base: BaseModel) -> None:
    vocabulary = base.vocabulary(3)
    first = entity_rows(3).stop
    sentence: list[Token] = ["the", "heron", ",", 1, "(", "it", ")", "ate", "."]

    rows = [row - first for own in vocabulary.rows_of(sentence) for row in own]

    assert base.tokenizer.decode(rows) == " the heron, (it) ate."


def test_alternatives_after_the_same_past_are_read_as_if_each_were_alone(base: BaseModel) -> None:
    rows = encode(DOCUMENT, base.vocabulary(3)).sentences
    model = build(base, "both")
    _, past = model.score(model.plan([rows[:2]]), model.initial_state(1))
    alternatives = [rows[4], [rows[4][0], rows[4][3], *rows[4][2:]]]
    alone = [model.score(model.plan([[own]]), past)[0][0] for own in alternatives]

    together, _ = model.score(model.plan([[own] for own in alternatives]), past.select([0, 0]))

    assert np.concatenate(together) == pytest.approx(np.concatenate(alone), abs=1e-10)
    assert together[0][3] != together[1][3]
