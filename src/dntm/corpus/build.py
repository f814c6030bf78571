"""Building a dataset: read, anonymise, split, count the vocabulary, cut, write.

Documents stream through a temporary file, so that a corpus need not fit into memory:

    source -> documents -> chains -> (temporary file) -> vocabulary of the training split -> names
    and unknown words -> parts -> entity numbers -> one file a split

The vocabulary is counted before unknown words become entities: what is unknown depends on it. Words
that are names whatever the vocabulary, those with a capital inside a sentence, are not counted; one
with a capital at the beginning of a sentence is where the training split has it in small letters,
too. (With hindsight: the words outside all mentions of the documents that stay.)

Departure: the paper counts more entities than there are chains and does not say how; here entities
are chains, and named entities outside of them only on request.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dntm.corpus import text
from dntm.corpus.anonymize import AnonymizeConfig, Mark, Marked, first_marks, mark_words
from dntm.corpus.dataset import (
    FORMAT_VERSION,
    SPLITS,
    SplitStatistics,
    content_hash,
    to_json,
)
from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.entities import CLOSED, Capitals, Lexicon
from dntm.corpus.resolver import Resolver, resolve
from dntm.corpus.vocabulary import SPECIALS, TextSettings, Vocabulary, load_vocabulary
from dntm.files import new_folder, write_text

Entities = Literal["chains", "names", "unknown", "resolver", "none"]
Assign = Callable[[str, str], str | None]
"""From a document's name and source file to its split, None where it belongs to none."""


@dataclass(frozen=True, kw_only=True)
class BuildConfig(AnonymizeConfig):
    """What becomes an entity, how long a document is, and how large the vocabulary."""

    entities: tuple[Entities, ...] | None = None
    """What counts as an entity, one or several of: chains (as annotated), names (runs of
    capitalised words), unknown (words outside the vocabulary), resolver (a coreference model); or
    none. Where not given: chains, or for plain text names and unknown words."""
    keep_single_in_part: bool = True
    """Keep an entity of which the cut leaves a single mention in a part."""
    max_entities: int = 50
    """Rows of the vocabulary for entities."""
    rows: Literal["leave-out", "lend"] | None = None
    """Documents (or parts) with more entities than rows are left out, or stay: then rows are lent,
    that of the entity not mentioned for the longest time first. Where not given: lend where names
    or unknown words are entities from their first mention on, else leave-out."""
    max_sentences: int | None = None
    """Cut documents into near-equal parts of at most so many sentences; 0: never. Where not given:
    never, or as the corpus known by name has it."""
    vocabulary_size: int = 10_000
    """Rows of the vocabulary in all, entities and special tokens included."""
    vocabulary_of: Path | None = None
    """A dataset, run, checkpoint or pretraining run (or default: the model that comes with dntm)
    whose vocabulary to take, entities and lower case included, instead of counting one: a model of
    that vocabulary can then be evaluated on this dataset, or go on learning from it."""
    text_rules: text.Version | None = None
    """The version of the rules for words and sentences of plain text. Where not given: 2, or with
    --entities-from repeated 1, the rules of the datasets that were built before there was a 2."""

    def as_plain(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        of = None if self.vocabulary_of is None else str(self.vocabulary_of)
        return asdict(self) | {"vocabulary_of": of}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_entities < 1:
            raise ValueError(f"max_entities is {self.max_entities}, expected at least 1")
        if self.vocabulary_size <= (least := len(SPECIALS) + self.max_entities):
            raise ValueError(
                f"vocabulary_size is {self.vocabulary_size}, expected more than {least}: "
                f"{len(SPECIALS)} special and {self.max_entities} entity rows count too"
            )
        if self.max_sentences is not None and self.max_sentences < 0:
            raise ValueError(f"max_sentences is {self.max_sentences}, expected at least 0")
        if self.entities == ():
            raise ValueError("no kind of entity given, expected at least one")
        if self.entities is not None and "none" in self.entities and len(self.entities) > 1:
            raise ValueError(f"entities {', '.join(self.entities)}: none goes with no other kind")

    def resolved(self, vocabulary: Vocabulary | None = None, **corpus: Any) -> "BuildConfig":
        """The settings with what a corpus or a given vocabulary decides where the user did not."""
        hindsight = self.entities_from == "repeated"
        corpus.setdefault("text_rules", 1 if hindsight else text.VERSION)
        missing = {name: v for name, v in corpus.items() if getattr(self, name) is None}
        config = replace(self, **missing)
        if config.rows is None:
            found = {"names", "unknown"}.intersection(config.entities or ())
            config = replace(config, rows="lend" if found and not hindsight else "leave-out")
        if vocabulary is None:
            return config
        return replace(
            config,
            max_entities=vocabulary.entities,
            vocabulary_size=len(vocabulary),
            lower_case=config.lower_case or vocabulary.lower_case,
        )

    def text_settings(self) -> TextSettings:
        """What whoever reads with the vocabulary has to know."""
        return TextSettings(
            lower_case=self.lower_case,
            entities=self.entities or (),
            entities_from=self.entities_from,
            text_rules=self.text_rules or text.VERSION,
        )


PAPERS_BUILD = BuildConfig(entities_from="repeated")
"""The paper's setting: only what comes again, documents with too many entities left out."""


@dataclass
class LeftOut:
    """Documents (or parts) that are not in the dataset, and why."""

    too_many_entities: int = 0
    in_no_split: int = 0
    malformed: int = 0
    not_of_the_corpus: int = 0


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a dataset comes from."""

    corpus: str
    """Its name, or the source as given."""
    given: str | None = None
    """The local copy or mirror it was taken from."""
    version: str = ""
    """The commit or version it was read at."""
    digest: str = ""
    """SHA-256 of its files."""
    licence: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a dataset is built from."""

    documents: Iterable[Document]
    assign: Callable[[list[tuple[str, str]]], Assign]
    """The rule of the splits, once the name and source file of every document are known."""
    origin: Origin
    left_out: LeftOut
    """Filled while the documents are read."""
    settings: dict[str, Any]
    """How they are read, to be kept with the dataset."""
    resolver: Resolver | None = None


def build(source: Source, target: Path, config: BuildConfig, *, overwrite: bool) -> dict[str, Any]:
    """Build the dataset folder and return the content of its `dataset.json`."""
    left_out = source.left_out
    given = None
    if config.vocabulary_of is not None:
        given = load_vocabulary(config.vocabulary_of, entities=config.max_entities)
    config = config.resolved(given)
    with new_dataset(target, overwrite=overwrite) as folder:
        staged = folder / "staged.jsonl"
        keys = _stage(source, staged, config)
        rule = source.assign(keys)
        split_of = [rule(*key) for key in keys]
        left_out.in_no_split = sum(split not in SPLITS for split in split_of)
        vocabulary = given or _count_vocabulary(_staged(staged, split_of), config)
        vocabulary = replace(vocabulary, settings=config.text_settings())
        parts = _parts_of_all(_staged(staged, split_of), vocabulary, config, left_out)
        statistics = write_splits(folder, parts, vocabulary)
        staged.unlink()
        settings = {**config.as_plain(), "reading": source.settings}
        return finish(folder, vocabulary, statistics, settings, source)


def new_dataset(target: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """The new folder of a dataset; only another dataset is ever replaced."""
    if overwrite and target.exists() and not (target / "dataset.json").is_file():
        raise ValueError(f"{target} is no dataset: --overwrite replaces nothing else")
    return new_folder(target, overwrite=overwrite)


def finish(
    folder: Path,
    vocabulary: Vocabulary,
    statistics: dict[str, SplitStatistics],
    settings: dict[str, Any],
    source: Source,
) -> dict[str, Any]:
    """Write `vocab.txt` and `dataset.json` beside the documents."""
    left_out = source.left_out
    held = sum(counted.documents for counted in statistics.values())
    if not statistics["train"].documents and not (held and settings.get("vocabulary_of")):
        raise ValueError(
            "the training split holds no document (nothing to count a vocabulary from, unless one "
            "is given with --vocabulary-of): "
            f"{statistics['dev'].documents} fell into dev, {statistics['test'].documents} into "
            f"test, {left_out.too_many_entities} had too many entities (cut documents with "
            f"--max-sentences or raise --max-entities), {left_out.in_no_split} belong to no "
            f"split, {left_out.malformed} were malformed"
        )
    if not vocabulary.words:
        raise ValueError("the training split holds no word outside its mentions: nothing to model")
    if statistics["train"].rows:
        vocabulary = replace(vocabulary, counts=statistics["train"].row_counts(vocabulary))
    replace(vocabulary, settings=None).save(folder)  # dataset.json has the settings
    information = {
        "dataset_type": "dntm",
        "format_version": FORMAT_VERSION,
        "source": asdict(source.origin),
        "settings": settings,
        "entities": vocabulary.entities,
        "vocabulary": len(vocabulary),
        "counts": {split: statistics[split].as_plain() for split in SPLITS},
        "left_out": asdict(left_out),
        "warnings": _warnings(statistics, settings),
        "content_hash": content_hash(folder),
    }
    text = json.dumps(information, indent=2, ensure_ascii=False)
    write_text(folder / "dataset.json", text + "\n")
    return information


def _warnings(statistics: dict[str, SplitStatistics], settings: dict[str, Any]) -> list[str]:
    """What is odd about a dataset that was built as asked."""
    found = []
    tokens = sum(counted.tokens for counted in statistics.values())
    if not sum(c.entity_tokens for c in statistics.values()) and "none" not in (
        settings.get("entities") or ()
    ):
        found.append(
            f"none of its {tokens:,} tokens is an entity: is the format right (inline markup is "
            "--format inline), and --entities?"
        )
    train = statistics["train"]
    for split in ("dev", "test"):
        other = statistics[split]
        share = other.unknown_tokens / max(other.tokens, 1)
        if train.documents and not train.unknown_tokens and share > _MANY_UNKNOWN:
            found.append(
                f"{split} has {share:.0%} unknown words and train has none, so that a model never "
                "learns what <unk> is: make --vocabulary-size smaller than the words of train"
            )
    return found


_MANY_UNKNOWN = 0.02


def write_splits(
    folder: Path, documents: Iterable[tuple[str, AnonymizedDocument]], vocabulary: Vocabulary
) -> dict[str, SplitStatistics]:
    """Write each document to the file of its split, and count."""
    statistics: dict[str, SplitStatistics] = {split: SplitStatistics() for split in SPLITS}
    with ExitStack() as stack:
        files = {
            split: stack.enter_context(
                (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
            )
            for split in SPLITS
        }
        for split, document in documents:
            files[split].write(to_json(document) + "\n")  # type: ignore[index]
            statistics[split].add(document, vocabulary)
    return statistics


def _stage(source: Source, staged: Path, config: BuildConfig) -> list[tuple[str, str]]:
    """Anonymise every document as a whole; returns their names and source files."""
    keys: list[tuple[str, str]] = []
    seen: dict[tuple[str, str], str] = {}
    with staged.open("w", encoding="utf-8") as handle:
        for document in source.documents:
            other = seen.setdefault((document.name, document.part), document.source)
            if len(seen) == len(keys):
                raise ValueError(
                    f"{document.source}: document {document.name!r} part {document.part!r} is "
                    f"also in {other}, expected each document once"
                )
            marked = _mark_chains(document, config, source.resolver)
            handle.write(json.dumps([marked.name, marked.sentences, marked.marks]) + "\n")
            keys.append((document.name, document.source))
    return keys


def _mark_chains(document: Document, config: BuildConfig, resolver: Resolver | None) -> Marked:
    """The marks of a document that do not depend on the vocabulary."""
    kinds = config.entities or ("chains",)
    found = document if "chains" in kinds else replace(document, chains=())
    if resolver is not None:
        resolved = resolve(document, resolver)
        found = replace(found, chains=[*found.chains, *resolved.chains])
    if "none" in kinds:
        found = replace(found, chains=(), named_entities=())
    return first_marks(found, kinds, config)


def _staged(staged: Path, split_of: list[str | None]) -> Iterator[tuple[str, Marked]]:
    with staged.open(encoding="utf-8", newline="\n") as handle:
        for line, split in zip(handle, split_of, strict=True):
            if split in SPLITS:
                name, sentences, marks = json.loads(line)
                marks = [[Mark(*mark) for mark in sentence] for sentence in marks]
                yield split, Marked(name=name, sentences=sentences, marks=marks)


def _count_vocabulary(documents: Iterable[tuple[str, Marked]], config: BuildConfig) -> Vocabulary:
    counts: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    names = config.entities_from == "first" and "names" in (config.entities or ())
    for split, document in documents:
        if split == "train":
            if names:
                _count_no_names(document, counts, begins)
                continue
            for part in _parts(document, config):
                if part.entities <= config.max_entities or config.rows == "lend":
                    counts.update(part.words())
    small = CLOSED | {word for word in counts if word[0].islower()}
    for word, count in begins.items():
        if word.lower() in small:
            counts[word] += count
    if config.lower_case:
        counts = _lowered(counts)
    return Vocabulary.from_counts(counts, size=config.vocabulary_size, entities=config.max_entities)


def _lowered(counts: Counter[str]) -> Counter[str]:
    lowered: Counter[str] = Counter()
    for word, count in counts.items():
        lowered[word.lower()] += count
    return lowered


def _count_no_names(document: Marked, counts: Counter[str], begins: Counter[str]) -> None:
    """Count words that may be no names; those with the capital of a beginning for themselves."""
    for words, marks in zip(document.sentences, document.marks, strict=True):
        taken = {w for mark in marks for w in range(mark.start, mark.end)}
        capitals = Capitals(words, taken)
        for w, word in enumerate(words):
            if w in taken or capitals.tells(w):
                continue
            (begins if word[0].isupper() else counts)[word] += 1


def _parts_of_all(
    documents: Iterable[tuple[str, Marked]],
    vocabulary: Vocabulary,
    config: BuildConfig,
    left_out: LeftOut,
) -> Iterator[tuple[str, AnonymizedDocument]]:
    """Every part that stays, with its split."""
    lexicon = Lexicon(vocabulary)
    kinds = config.entities or ()
    for split, document in documents:
        whole = mark_words(document, kinds, lexicon, config.entities_from)
        for part in _parts(whole, config):
            if part.entities > config.max_entities and config.rows != "lend":
                left_out.too_many_entities += 1
            else:
                yield split, part.anonymized(lower_case=config.lower_case)


def _parts(document: Marked, config: BuildConfig) -> Iterator[Marked]:
    for part in document.cut(config.max_sentences or None):
        keep = config.keep_single_in_part or part is document
        yield part if keep else part.without_single()
