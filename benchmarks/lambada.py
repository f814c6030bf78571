"""LAMBADA: the last word of a passage (Paperno et al. 2016).

Every line of the file is a passage: lower case, tokenized, with the word to predict at its end. A
word is right at k if at most k candidates are as likely. Candidates are all words of the vocabulary
and all words of the entities of the passage. Their probabilities are those of `dntm score`
(`model.strings`):

    p(w) = p(row of w) + (p(<unk>) + p(new entity)) q(w) + sum over known e of p(e) r(w | e)

These texts have no capitals to mark names. A known word is read as a name if the training text has
it more often as the first mention of an entity (`spelling.json`) than as a word (`counts.txt`);
equal words are one entity. Unknown words are entities as in any text. A sentence ends after . ! or
? and closing quotes.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import tyro
from jaxtyping import Float
from tqdm import tqdm

from dntm.cli.runs import print_table
from dntm.cli.texts import ModelOptions
from dntm.corpus.document import Document, InputError, Mention, text_lines
from dntm.corpus.text import WORD
from dntm.corpus.vocabulary import BOS, EOS, UNK, entity_rows, row_of_entity
from dntm.files import write_text
from dntm.model.language_model import DynamicTextModel
from dntm.model.spelling import Forms, Spelling, string_of
from dntm.reader.reader import Reader
from dntm.reader.text import PreparedText

CUTS = (1, 10)
BATCH = 32
"""Passages read at once."""
_QUOTES = {"``": '"', "''": '"', "`": "'"}
_ENDS = frozenset(".!?")
_CLOSING = ("''", "'", ")")


class Passage(NamedTuple):
    """A passage without its last word."""

    sentences: list[list[str]]
    """The last one is not finished; it is empty if the answer begins a sentence."""
    answer: str


@dataclass(frozen=True, kw_only=True)
class LambadaOptions:
    """Options of this benchmark."""

    passages: Annotated[Path, tyro.conf.Positional]
    """A file of passages, one per line, optionally gzipped."""
    sample: int = 0
    """Number of passages to draw; 0: all."""
    seed: int = 0
    """Random seed for the sample."""
    json: Path | None = None
    """Also write the numbers to this file."""
    options: Annotated[ModelOptions, tyro.conf.arg(name="")] = field(default_factory=ModelOptions)
    """Options of the model."""


def read_passages(path: Path) -> list[Passage]:
    """The passages of a file."""
    found = []
    for number, line in text_lines(path):
        if len(tokens := line.split()) > 1:
            found.append(passage_of(tokens))
        elif tokens:
            raise InputError(str(path), number, f"found {line.strip()!r}, expected a passage")
    if not found:
        raise InputError(str(path), None, "no passage")
    return found


def passage_of(tokens: Sequence[str]) -> Passage:
    """Divide a passage into sentences, and its words as other texts are divided."""
    sentences: list[list[str]] = [[]]
    ended = False
    for token in tokens:
        if ended and token not in _CLOSING:
            sentences.append([])
            ended = False
        sentences[-1] += [_QUOTES[token]] if token in _QUOTES else WORD.findall(token)
        ended = ended or token in _ENDS
    return Passage(sentences, sentences[-1].pop())


class Lambada:
    """Ranks the last words of passages."""

    def __init__(self, reader: Reader) -> None:
        if reader.models.spelling is None:
            raise ValueError("the model has no spelling.json: run dntm spelling to add it")
        self._reader, self._vocabulary = reader, reader.vocabulary
        self._spelling: Spelling = reader.models.spelling
        self._first = entity_rows(self._vocabulary.entities).stop
        strings = [string_of((word,), self._vocabulary) for word in self._vocabulary.words]
        self._q = np.exp([spelled.begins[0] for spelled in self._spelling.q(strings)])

    def is_name(self, word: str) -> bool:
        """Whether a known word is read as a name."""
        row, counts = self._vocabulary.row(word), self._vocabulary.counts
        if row == UNK or counts is None:
            return False
        return self._spelling.counts.get(word, 0) > counts[row]

    def prepare(self, passage: Passage) -> PreparedText:
        """Find the entities of a passage."""
        sentences = [sentence for sentence in passage.sentences if sentence]
        names: dict[str, list[Mention]] = {}
        for s, words in enumerate(sentences):
            for w, word in enumerate(words):
                if self.is_name(word):
                    names.setdefault(word, []).append(Mention(s, w, w + 1))
        if not sentences:
            return PreparedText(name="passage", sentences=())
        document = Document(name="passage", sentences=sentences, chains=[*names.values()])
        # With "inline", an entity needs only one mention
        return self._reader.prepare(document, ("inline", "unknown"))

    @torch.no_grad()
    def ranks(self, passages: Sequence[Passage]) -> list[tuple[float, float]]:
        """The rank of each answer under the model and its static baseline; inf: no candidate."""
        engine = self._reader.engine
        texts = [self.prepare(passage) for passage in passages]
        slots = [engine.slots() for _ in texts]
        encoded = [engine.encode_words(t.sentences, s) for t, s in zip(texts, slots, strict=True)]
        sentences, evictions = [], []
        for passage, rows in zip(passages, encoded, strict=True):
            *finished, last = [*rows.sentences, [BOS, EOS]][: len(passage.sentences)]
            sentences.append([*finished, last[:-1]])
            *before, changes = [*rows.evictions, []][: len(passage.sentences)]
            evictions.append([*before, [c for c in changes if c.position < len(last) - 1]])
        ends = np.cumsum([sum(map(len, text)) for text in sentences]) - 1

        def distribution(model: DynamicTextModel) -> Float[np.ndarray, "passages vocabulary"]:
            window = model.plan(sentences, [False] * len(texts), evictions=evictions)
            state = model.initial_state(len(texts))
            _, log_p, _ = model.log_distribution(window, state, ends.tolist())
            return log_p.double().exp().numpy()

        both = [distribution(m) for m in (self._reader.models.dynamic, self._reader.models.static)]
        found = []
        for passage, text, slot, *p in zip(passages, texts, slots, *both, strict=True):
            forms: dict[int, Forms] = {}
            for word in text.mentions():
                own = forms.setdefault(int(word.token), Forms())
                own.add(string_of(word.words, self._vocabulary))
            in_rows = {row_of_entity(s): forms[slot.occupant(s)] for s in slot.occupied()}
            [answer] = string_of((passage.answer,), self._vocabulary)
            dynamic, static = (self._rank(own, answer, in_rows) for own in p)
            found.append((dynamic, static))
        return found

    def _rank(
        self, p: Float[np.ndarray, " vocabulary"], answer: str, forms: dict[int, Forms]
    ) -> float:
        """The rank of a string, given the forms of the entity in each row."""
        weight = np.ones(self._first)
        weight[EOS] = 0
        copies: dict[str, float] = {}
        for row, own in forms.items():
            shares = self._spelling.shares_after(own.mentions)
            weight[row] = shares.new
            for word in own.words:
                parts = zip(shares, own.parts((word,))[0], strict=False)
                share = sum(a * part for a, part in parts)
                copies[word] = copies.get(word, 0.0) + float(p[row]) * share
        new = float(p[: self._first] @ weight)
        words = p[self._first :] + new * self._q
        unknown: dict[str, float] = {}
        for word, copied in copies.items():
            if (row := self._vocabulary.row(word)) != UNK:
                words[row - self._first] += copied
            else:
                [spelled] = self._spelling.q([(word,)])
                unknown[word] = copied + new * float(np.exp(spelled.begins[0]))
        row = self._vocabulary.row(answer)
        if row == UNK and answer not in unknown:
            return float("inf")
        right = unknown[answer] if row == UNK else words[row - self._first]
        return float((words >= right).sum() + sum(other >= right for other in unknown.values()))


def measure(options: LambadaOptions) -> dict[str, Any]:
    """Accuracies of both models."""
    passages = read_passages(options.passages)
    if options.sample:
        draw = random.Random(options.seed)
        passages = draw.sample(passages, min(options.sample, len(passages)))
    model = options.options
    reader = Reader.from_pretrained(
        model.model, model.static, precision="single", without=model.without
    )
    lambada = Lambada(reader)
    found: list[tuple[float, float]] = []
    for start in tqdm(range(0, len(passages), BATCH), unit=" batches"):
        found += lambada.ranks(passages[start : start + BATCH])
    ranks = dict(zip(("model", "static"), np.array(found).T, strict=True))
    return {
        "passages": len(passages),
        "candidates": float(np.isfinite(ranks["model"]).mean()),
        **{
            name: {f"at {k}": float((own <= k).mean()) for k in CUTS} for name, own in ranks.items()
        },
        "static model": reader.models.static_name,
    }


def main(options: LambadaOptions) -> None:
    """Print accuracies at 1 and at 10."""
    found = measure(options)
    rows = [["accuracy", *(f"at {k}" for k in CUTS)]]
    rows += [[name, *(f"{v:.3f}" for v in found[name].values())] for name in ("model", "static")]
    print_table(rows)
    print(
        f"{found['passages']:,} passages, {found['candidates']:.1%} of the answers are candidates; "
        f"static: {found['static model']}"
    )
    print("published, test passages: no model of 2016 above 0.010, GPT-2 117M 0.460")
    if options.json:
        write_text(options.json, json.dumps(found, indent=2) + "\n")
        print(f"numbers: {options.json}")


if __name__ == "__main__":
    main(tyro.cli(LambadaOptions, description=__doc__))
