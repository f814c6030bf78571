"""Against the real corpora, where they are (DNTM_DATA); skipped, visibly, where they are not."""

import io
import os
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from dntm.corpus import conll
from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import SplitStatistics
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset

PARTS = BuildConfig(max_sentences=28)


def udapi_chains(path: Path) -> Counter[tuple[tuple[int, int, int], ...]]:
    """Chains as udapi reads them: sentence, start and end of each mention."""
    from udapi.core.document import Document

    with redirect_stderr(io.StringIO()):
        document = Document(str(path))
    sentence_of = {tree.sent_id: number for number, tree in enumerate(document.trees)}
    found: Counter[tuple[tuple[int, int, int], ...]] = Counter()
    for entity in document.coref_entities:
        mentions = []
        for mention in entity.mentions:
            sentence = sentence_of[mention.words[0].root.sent_id]
            ordinals = [word.ord for word in mention.words]
            mentions.append((sentence, min(ordinals) - 1, max(ordinals)))
        found[tuple(sorted(mentions))] += 1
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # udapi's own, and it leaves files open
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_chains_of_ontogum_equal_udapis_mention_by_mention(data: Path) -> None:
    pytest.importorskip("udapi")
    files = sorted((data / "ontogum" / "conllu").glob("*.conllu"))
    if "DNTM_ALL" not in os.environ:  # all 237 take udapi two minutes
        files = files[::24]

    for path in files:
        (block,) = conll.blocks_u(path)
        ours = Counter(
            tuple((m.sentence, m.start, m.end) for m in chain)
            for chain in conll.parse_u(block).chains
        )
        assert ours == udapi_chains(path), path.name
    assert files


def test_ontogum_in_parts_of_28_comes_close_to_the_papers_table_1(
    data: Path, tmp_path: Path
) -> None:
    given = str(data / "ontogum")

    information = build_dataset("ontogum", tmp_path / "out", ReadConfig(), PARTS, given=given)

    counts = information["counts"]
    assert [counts[split]["documents"] for split in counts] == [450, 69, 69]
    table = SplitStatistics(**counts["train"]).table_1()
    assert [round(value, 2) for value in table] == [450, 22.72, 14.31, 10.6, 3.27]


@pytest.mark.parametrize("corpus", ["litbank", "craft"])
def test_litbank_and_craft_build_without_error(data: Path, tmp_path: Path, corpus: str) -> None:
    source, given = (corpus, str(data / corpus)) if corpus in CORPORA else (data / corpus, None)

    information = build_dataset(str(source), tmp_path / "out", ReadConfig(), PARTS, given=given)

    assert information["counts"]["train"]["documents"] > 10
    assert information["counts"]["dev"]["documents"] > 3
