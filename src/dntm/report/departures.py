"""What differs from the paper's own study, and what was decided where the paper is silent."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from dntm.corpus.build import BuildConfig
from dntm.experiments.paper import PAPER_TABLE_1
from dntm.experiments.presets import PRESETS
from dntm.experiments.recipes import PRETRAINING
from dntm.report.document import Items, Paragraph, Section
from dntm.report.numbers import listed
from dntm.report.results import StudyResults
from dntm.report.settings import OF_THE_CELL, corpus_name, text_names

INNERMOST = "the innermost of nested mentions is kept"
"""Only where the dataset was built so."""
DECISIONS = (
    (
        "the GRU is Cho et al.'s, the reset gate before the product, with one bias; one merging "
        "GRU is shared by the input and output layer"
    ),
    (
        "several mentions of an entity in one sentence are all encoded with the embeddings from "
        "before the sentence and merged left to right at its end"
    ),
    "the loss of an update is the mean surprisal over all tokens predicted since the last one",
    (
        "candidates of the cloze test are the entities of earlier sentences, and a mention of an "
        "entity that only its own sentence has brought in is no gap"
    ),
    "in the cloze test log-likelihoods within 1e-4 nats are ties, which count against the model",
    "Figure 6 counts reappearing entities, and the bins of all figures are ours",
)
"""Where the paper is silent (docs/departures.md)."""
PRETRAINING_DECISIONS = (
    "negatives are drawn in proportion to counts to the power of .75",
    "batches of pretraining hold sentences of like length",
    "<unk> is hidden and drawn like any other word",
    "pretraining updates with Adam and cuts gradients as training does",
    "every word of the dataset has a row in pretraining, however rare it is in its text",
)
_ENTITIES = {
    "chains": "coreference chains",
    "names": "names (runs of capitalised words)",
    "unknown": "unknown words that come back",
    "resolver": "chains found by a coreference model",
}
_PAPERS_BUILD = {**dataclasses.asdict(BuildConfig()), "entities": ["chains"]}
_NOT_TOLD = {"documents", "held_out", "validations", "vocabulary_size"}
"""Settings of pretraining of which the paper says nothing, or which change no weight."""


def departures(results: StudyResults) -> Section:
    """Both lists."""
    config, paper = results.config, PRESETS["paper"]
    items = []
    if config.corpus != "ontonotes":
        items.append(f"the corpus is {corpus_name(config)}, not OntoNotes")
    items += _of_the_dataset(results)
    items += _of_pretraining(results)
    for part in ("model", "training"):
        theirs, ours = (dataclasses.asdict(getattr(c, part)) for c in (paper, config))
        items += _differences(part, ours, theirs, OF_THE_CELL)
    decisions = list(DECISIONS)
    if results.dataset.get("settings", {}).get("nested") == "innermost":
        decisions.insert(0, INNERMOST)
    if config.begins_pretrained:
        decisions += PRETRAINING_DECISIONS
    silent = Paragraph("Where the paper is silent:")
    blocks = (Items(tuple(items)), silent, Items(tuple(decisions)))
    return Section("departures", "Departures from the paper", blocks)


def _of_the_dataset(results: StudyResults) -> Iterator[str]:
    dataset = results.dataset
    if not dataset:
        return
    built = dataset["settings"]
    counts = [dataset["counts"][split]["documents"] for split in PAPER_TABLE_1]
    paper = [row[0] for row in PAPER_TABLE_1.values()]
    if counts != paper:
        ours, theirs = (" / ".join(f"{n:,}" for n in numbers) for numbers in (counts, paper))
        yield f"{ours} documents or parts to train, validate and test on, the paper's {theirs}"
    if longest := built.get("max_sentences"):
        yield f"documents are cut into parts of at most {longest} sentences"
    kinds = built.get("entities")
    if kinds and list(kinds) != ["chains"]:
        names = listed([_ENTITIES.get(kind, kind) for kind in kinds])
        yield f"entities are {names}, the paper's are annotated coreference chains"
    if built.get("nested") == "outermost":
        yield "the outermost of nested mentions is kept"
    if dataset["vocabulary"] != _PAPERS_BUILD["vocabulary_size"]:
        yield f"the vocabulary has {dataset['vocabulary']:,} rows, the paper's 10,000"
    told = {"max_sentences", "entities", "nested", "vocabulary_size", "keep_single_in_part"}
    shared = {name: value for name, value in built.items() if name in _PAPERS_BUILD}
    yield from _differences("dataset", shared, _PAPERS_BUILD, told)
    reading = built.get("reading", {})
    if limit := reading.get("limit"):
        yield f"only the first {limit} documents of the corpus are read"
    if patterns := reading.get("leave_out"):
        yield f"documents whose names match {listed(patterns)} are left out"


def _of_pretraining(results: StudyResults) -> Iterator[str]:
    config = results.config
    if not config.begins_pretrained:
        yield (
            "no pretraining: context encoder and embeddings begin at random and are trained "
            "along, where the paper pretrained both on Gigaword and kept the encoder fixed"
        )
        return
    names = text_names(results)
    if not names:
        yield "the text of the pretraining that was given is not known"
    elif "gigaword" not in names.lower():
        yield f"the text of the pretraining is not Gigaword but what was given as {names}"
    sizes, recipe, store = PRETRAINING["paper"]
    ours = results.pretraining.settings
    if not ours and config.text:
        ours = {"training": config.pretraining, "store": config.store}
        ours = {part: dataclasses.asdict(values) for part, values in ours.items()}
    for part, theirs in (("model", sizes), ("training", recipe), ("store", store)):
        paper = dataclasses.asdict(theirs)
        yield from _differences("pretraining", ours.get(part, {}), paper, _NOT_TOLD)


def _differences(
    where: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], leave_out: set[str]
) -> Iterator[str]:
    for name, value in ours.items():
        if name not in leave_out and name in theirs and value != theirs[name]:
            yield f"{where}.{name} is {value}, the paper's {theirs[name]}"
