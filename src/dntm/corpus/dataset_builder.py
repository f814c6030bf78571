"""Dataset builder: builds a dataset folder from a named corpus, a file or a folder.

Documents stream through a temporary file, so a corpus does not have to fit in memory:

    source -> documents -> chains -> (temporary file) -> vocabulary of the training split -> names
    and unknown words -> parts -> entity numbers -> one file per split

The vocabulary is counted before names and unknown words become entities, since these depend on it.
Words with a capital inside a sentence are always names and are not counted; a word with a capital
at the beginning of a sentence is counted if the training split also has it in lower case. With
`entities_from="repeated"`, all words outside mentions are counted.

Departure: the paper counts more entities than there are chains and does not say how. Here, entities
are chains; named entities outside chains are added only on request.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.anonymize import AnonymizeConfig, mark_chains, mark_words
from dntm.corpus.catalog import CORPORA, Corpus, Key, dev_as_test, locate, part_of_train, splits_of
from dntm.corpus.dataset import SPLITS, Origin, new_dataset, write_dataset
from dntm.corpus.document import AnonymizedDocument, Document, Span
from dntm.corpus.entities import CLOSED, Capitals, Lexicon
from dntm.corpus.formats import ANNOTATED, Format, files_and_format, read_documents
from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import TextSettings, Vocabulary, check_size, load_vocabulary
from dntm.files import resolved
from dntm.settings import plain, require, settle

Entities = Literal["chains", "names", "unknown", "none"]


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """How a source is read and split."""

    format: Format | None = None
    """Format of the files; if omitted, it is detected. inline: text with [1], [2] as mentions."""
    documents: Documents = "file"
    """Plain text: each file is a document with blank lines between paragraphs (file), or each line
    is a paragraph with blank lines between documents (blank-line)."""
    on_error: Literal["stop", "skip"] = "stop"
    """Stop at a malformed document, or skip and count it."""
    limit: int | None = None
    """Read only this many documents."""
    leave_out: tuple[str, ...] = ()
    """Skip documents whose names match one of these patterns, such as 'GUM_fiction_*'."""
    splits: Path | None = None
    """File that assigns document ids to train, dev and test (one id and split per line, or a
    heading per split with ids as list items), or folder with train.ids, dev.ids and test.ids."""
    fractions: tuple[float, float, float] | None = None
    """Split documents at random into these fractions for train, dev and test. If omitted, the
    splits come from --splits or else from folder and file names; if these name no splits, the
    fractions are .8 .1 .1."""
    dev_as_test: bool = False
    """For a corpus without a test split: use dev as test, and a random tenth of train as dev."""
    train_fraction: float = 1.0
    """Keep only this fraction of the training documents; dev and test do not change."""
    seed: int = 1
    """Random seed for splits and for storyworld."""

    def __post_init__(self) -> None:
        settle(self, limit=1)
        if self.fractions and (min(self.fractions) < 0 or abs(sum(self.fractions) - 1) > 1e-6):
            raise ValueError(f"fractions {self.fractions}, expected three that sum to 1")
        require(self, "train_fraction", lambda v: 0 < v <= 1, "above 0 and at most 1")


@dataclass(frozen=True, kw_only=True)
class BuildConfig(AnonymizeConfig):
    """What becomes an entity, the length of documents, and the size of the vocabulary."""

    entities: tuple[Entities, ...] | None = None
    """What counts as an entity: chains (as annotated), names (runs of capitalized words), unknown
    (nouns outside the vocabulary), or none. If omitted: chains, or names and unknown words for
    plain text."""
    max_entities: int = 50
    """Number of entity rows in the vocabulary."""
    overflow: Literal["drop", "evict"] | None = None
    """Drop documents (or parts) with more entities than rows (drop), or keep them and reassign the
    row of the least recently mentioned entity (evict). If omitted: evict if names or unknown words
    are entities from their first mention on, else drop."""
    max_sentences: int | None = None
    """Divide documents into parts of nearly equal length with at most this many sentences; 0: do
    not divide. If omitted: the default of the named corpus, else 0."""
    vocabulary_size: int = 10_000
    """Number of vocabulary rows, including entities and special tokens."""
    vocabulary_of: Path | None = None
    """Use the vocabulary of this dataset, run, checkpoint or pretraining run, or of the bundled
    model ("default"). If omitted, the words of the training split are counted."""

    def __post_init__(self) -> None:
        settle(self, max_entities=1, max_sentences=0)
        check_size(self.vocabulary_size, self.max_entities)
        if self.entities == ():
            raise ValueError("entities is empty, expected at least one kind")
        if self.entities is not None and "none" in self.entities and len(self.entities) > 1:
            raise ValueError(f"entities {', '.join(self.entities)}: none cannot be combined")


PAPERS_BUILD = BuildConfig(entities_from="repeated")
"""The build of studies. In plain text, only names and unknown words that occur again are entities.
Documents with too many entities are dropped (Section 4)."""


def build_dataset(
    source: str,
    target: Path,
    reading: ReadConfig,
    config: BuildConfig,
    *,
    given: str | None = None,
    overwrite: bool = False,
    skipped: list[str] | None = None,
    empty: list[str] | None = None,
    progress: Callable[[Iterable[Document]], Iterable[Document]] = iter,
) -> dict[str, Any]:
    """Build a dataset and return the content of its `dataset.json`.

    `given` is a local copy of a named corpus. With `on_error="skip"`, the errors of malformed
    documents are appended to `skipped`. If `empty` is given, files and documents without a word are
    skipped and noted there.
    """
    skipped = [] if skipped is None else skipped
    corpus = CORPORA.get(source) or Corpus(name=source)
    if given and source not in CORPORA:
        raise ValueError(f"--from {given} needs a named corpus, not {source!r}")
    located = locate(corpus, given if source in CORPORA else source)
    here, there = resolved(target), resolved(located.documents)
    if here == there or here in there.parents:
        raise ValueError(f"{target} is or contains the source {there}: choose another folder")
    files, format_ = files_and_format(located.documents, reading.format or corpus.format)
    files = corpus.preferred(files, located.documents)
    if format_ in ANNOTATED and reading.documents != "file":
        raise ValueError(f"--documents {reading.documents} is only for plain text, found {format_}")
    vocabulary = None
    if config.vocabulary_of is not None:
        vocabulary = load_vocabulary(config.vocabulary_of, entities=config.max_entities)
    config = _with_defaults(config, corpus, format_, vocabulary)
    left_out: Counter[str] = Counter()
    documents = read_documents(
        located.documents,
        files,
        format_,
        documents=reading.documents,
        skipped=skipped if reading.on_error == "skip" else None,
        empty=empty,
        spans=False,
    )
    wanted = islice(_wanted(documents, corpus, reading.leave_out, left_out), reading.limit)
    with new_dataset(target, overwrite=overwrite) as folder:
        staged = folder / "staged.jsonl"
        keys = _stage(progress(wanted), staged, config)
        left_out["malformed"] = len(skipped)
        ids = reading.splits or located.splits
        split_of = splits_of(
            keys, ids, reading.fractions, reading.seed, by_name=corpus.split_by_name
        )
        if reading.dev_as_test:
            split_of = dev_as_test(keys, split_of, reading.seed)
        if reading.train_fraction < 1:
            split_of = part_of_train(keys, split_of, reading.train_fraction)
        left_out["in_no_split"] = sum(split not in SPLITS for split in split_of)
        vocabulary = vocabulary or _count_vocabulary(_staged(staged, split_of), config)
        text_settings = TextSettings.from_plain(asdict(config))
        vocabulary = replace(vocabulary, settings=text_settings)
        information = write_dataset(
            folder,
            _anonymized(_staged(staged, split_of), vocabulary, config, left_out),
            vocabulary,
            settings={
                **plain(asdict(config)),
                "reading": {**plain(asdict(reading)), "format": format_},
            },
            origin=Origin(
                corpus=source,
                given=given,
                version=located.version,
                digest=_digest(files, located.documents),
                license=corpus.license,
            ),
            left_out=left_out,
        )
        staged.unlink()
        return information


def _with_defaults(
    config: BuildConfig, corpus: Corpus, format_: Format, vocabulary: Vocabulary | None
) -> BuildConfig:
    """Fill omitted settings from the corpus, its format and a given vocabulary."""
    annotated = format_ in ANNOTATED or format_ == "inline"
    if config.named_entities and format_ != "conll2012":
        raise ValueError(f"--named-entities needs the column of CoNLL-2012, found {format_}")
    if not annotated and config.entities == ("chains",):
        raise ValueError("plain text has no chains: pass --entities names or unknown")
    entities = ("chains",) if annotated else ("names", "unknown")
    defaults = {"entities": entities, "max_sentences": 0, **corpus.settings}
    omitted = {name: v for name, v in defaults.items() if getattr(config, name) is None}
    config = replace(config, **omitted)
    if config.overflow is None:
        found = {"names", "unknown"}.intersection(config.entities or ())
        evict = found and config.entities_from == "first"
        config = replace(config, overflow="evict" if evict else "drop")
    if format_ == "inline":  # anonymized already: every [k] is an entity, even if mentioned once
        config = replace(config, keep_single=True)
    if vocabulary is None:
        return config
    return replace(
        config,
        max_entities=vocabulary.entities,
        vocabulary_size=len(vocabulary),
        lower_case=config.lower_case or vocabulary.lower_case,
    )


def _wanted(
    documents: Iterable[Document], corpus: Corpus, leave_out: Sequence[str], left_out: Counter[str]
) -> Iterator[Document]:
    for document in documents:
        if re.match(corpus.leave_out, document.name):
            left_out["not_of_the_corpus"] += 1
        elif not any(fnmatchcase(document.name, pattern) for pattern in leave_out):
            yield document


def _digest(files: list[Path], root: Path) -> str:
    """SHA-256 of the names and contents of the files."""
    digest = hashlib.sha256()
    for path in files:
        name = path.relative_to(root).as_posix() if path != root else path.name
        digest.update(f"{name}\0".encode())
        if path.is_file():
            with path.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def _stage(documents: Iterable[Document], staged: Path, config: BuildConfig) -> list[Key]:
    """Write each document with its chains; return names and source files."""
    kinds = config.entities or ()
    sources: dict[tuple[str, str], str] = {}
    with staged.open("w", encoding="utf-8") as handle:
        for document in documents:
            key = (document.name, document.part)
            if key in sources:
                raise ValueError(
                    f"{document.source}: document {document.name!r} part {document.part!r} is "
                    f"also in {sources[key]}, expected each document once"
                )
            sources[key] = document.source
            if "chains" not in kinds:
                document = replace(document, chains=())  # noqa: PLW2901
            if "none" in kinds:
                document = replace(document, named_entities=())  # noqa: PLW2901
            marked = mark_chains(document, kinds, config)
            handle.write(json.dumps([marked.name, marked.sentences, marked.mentions]) + "\n")
    return [(name, source) for (name, _), source in sources.items()]


def _staged(staged: Path, split_of: Sequence[str | None]) -> Iterator[tuple[str, Document]]:
    with staged.open(encoding="utf-8", newline="\n") as handle:
        for line, split in zip(handle, split_of, strict=True):
            if split in SPLITS:
                name, sentences, mentions = json.loads(line)
                mentions = [[Span(*span) for span in spans] for spans in mentions]
                yield split, Document(name=name, sentences=sentences, mentions=mentions)


def _count_vocabulary(documents: Iterable[tuple[str, Document]], config: BuildConfig) -> Vocabulary:
    counts: Counter[str] = Counter()
    initial: Counter[str] = Counter()
    names = config.entities_from == "first" and "names" in (config.entities or ())
    for split, document in documents:
        if split == "train":
            if names:
                _count_non_names(document, counts, initial)
                continue
            for part in document.parts(config.max_sentences):
                if part.entities <= config.max_entities or config.overflow == "evict":
                    counts.update(part.words())
    lower = CLOSED | {word for word in counts if word[0].islower()}
    for word, count in initial.items():
        if word.lower() in lower:
            counts[word] += count
    if config.lower_case:
        lowered: Counter[str] = Counter()
        for word, count in counts.items():
            lowered[word.lower()] += count
        counts = lowered
    return Vocabulary.from_counts(counts, size=config.vocabulary_size, entities=config.max_entities)


def _count_non_names(document: Document, counts: Counter[str], initial: Counter[str]) -> None:
    """Count words that cannot be names; capitalized words at sentence beginnings separately."""
    for words, mentions in zip(document.sentences, document.mentions, strict=True):
        taken = {w for span in mentions for w in range(span.start, span.end)}
        capitals = Capitals(words, taken)
        for w, word in enumerate(words):
            if w not in taken and not capitals.marks_name(w):
                (initial if word[0].isupper() else counts)[word] += 1


def _anonymized(
    documents: Iterable[tuple[str, Document]],
    vocabulary: Vocabulary,
    config: BuildConfig,
    left_out: Counter[str],
) -> Iterator[tuple[str, AnonymizedDocument]]:
    """Every part that is kept, with its split."""
    lexicon = Lexicon(vocabulary)
    for split, document in documents:
        whole = mark_words(document, config.entities or (), lexicon, config.entities_from)
        for part in whole.parts(config.max_sentences):
            if part.entities > config.max_entities and config.overflow == "drop":
                left_out["too_many_entities"] += 1
            else:
                yield split, part.anonymized(lower_case=config.lower_case)
