"""Unknown words that become entities, compared with OntoGUM's parts of speech.

A word without a row in the vocabulary should become an entity if it is a noun or a name (NOUN,
PROPN). Words are OntoGUM's own tokens; entities are found as in `dntm read`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import tyro

from benchmarks.segmentation import Counts, Gold, SegmentationOptions, documents_of
from dntm.corpus.entities import EntityFinder, Lexicon
from dntm.corpus.vocabulary import load_vocabulary

NOUNS = ("NOUN", "PROPN")


@dataclass(frozen=True, kw_only=True)
class UnknownWordOptions(SegmentationOptions):
    """Options of this benchmark."""

    vocabulary: Path = Path("default")
    """A run folder or checkpoint; default: the bundled model."""


def measure(documents: Iterable[Gold], lexicon: Lexicon) -> tuple[Counts, Counter[str]]:
    """Precision and recall counts, and the entities by part of speech."""
    counts, tags = Counts(), Counter[str]()
    for gold in documents:
        finder = EntityFinder(lexicon, ("names", "unknown"))
        for spans, upos in zip(gold.sentences, gold.tags, strict=True):
            words = [gold.text[start:end] for start, end in spans]
            found = {w for start, end, _ in finder.read(words) for w in range(start, end)}
            unknown = {w for w, s in enumerate(words) if s.isalpha() and s not in lexicon}
            nouns = {(w, w) for w in unknown if upos[w] in NOUNS}
            counts = counts.plus({(w, w) for w in unknown & found}, nouns)
            tags.update(upos[w] for w in unknown & found)
    return counts, tags


def main(options: UnknownWordOptions) -> None:
    """Print precision and recall."""
    lexicon = Lexicon(load_vocabulary(options.vocabulary, entities=50))
    counts, tags = measure(documents_of(options), lexicon)
    precision, recall = counts.correct / counts.found, counts.correct / counts.expected
    print(
        f"{counts.expected:,} unknown nouns and names, {counts.found:,} unknown words are entities"
    )
    print(f"precision {precision:.3f}, recall {recall:.3f}, F1 {counts.f1:.3f}")
    print("entities by part of speech: " + ", ".join(f"{tag} {n}" for tag, n in tags.most_common()))
    numbers = {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(counts.f1, 4),
    }
    options.save({"split": options.split, **numbers, "parts_of_speech": dict(tags.most_common())})


if __name__ == "__main__":
    main(tyro.cli(UnknownWordOptions, description=__doc__))
