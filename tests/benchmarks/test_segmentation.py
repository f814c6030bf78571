from pathlib import Path

from benchmarks.segmentation import ALL, SegmentationOptions, documents_of, measure, ours
from benchmarks.unknown_words import measure as measure_unknown
from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import Vocabulary

SENTENCES = [  # a paragraph of two sentences, and another one
    ("# newpar", "I didn't.", "I/PRON did/AUX n't/PART ./PUNCT"),
    ("", "so he wugged.", "so/ADV he/PRON wugged/VERB ./PUNCT"),
    ("# newpar", "The wug slept.", "The/DET wug/NOUN slept/VERB ./PUNCT"),
]


def corpus(folder: Path) -> SegmentationOptions:
    (folder / "conllu").mkdir()
    (folder / "splits.md").write_text("## dev\n\n  * GUM_news_wug\n\n## test\n\n  * GUM_bio_dax\n")
    lines = ["# newdoc id = GUM_news_wug"]
    for paragraph, raw, words in SENTENCES:
        lines += [paragraph, f"# text = {raw}"] if paragraph else [f"# text = {raw}"]
        for number, word in enumerate(words.split(), start=1):
            form, tag = word.split("/")
            lines.append(f"{number}\t{form}\t_\t{tag}\t_\t_\t_\t_\t_\t_")
        lines.append("")
    (folder / "conllu" / "GUM_news_wug.conllu").write_text("\n".join(lines))
    return SegmentationOptions(corpus=folder)


def test_a_missed_boundary_and_a_wrong_token_are_counted_by_genre(tmp_path: Path) -> None:
    documents = list(documents_of(corpus(tmp_path)))

    assert documents[0].text == "I didn't. so he wugged.\n\nThe wug slept."
    missed = measure(documents, ours)
    right = measure(documents, lambda _: documents[0].sentences)
    wrong = measure(documents, lambda _: [[(0, 8), (8, 9)], *documents[0].sentences[1:]])

    assert missed.boundaries == {ALL: 0, "news": 0}
    assert missed.tokens == right.tokens == right.boundaries == {ALL: 1, "news": 1}
    assert wrong.tokens["news"] == round(2 * 9 / (10 + 12), 4)


def test_unknown_nouns_and_other_unknown_entities_are_counted(tmp_path: Path) -> None:
    lexicon = Lexicon(Vocabulary(("i", "did", "n't", "so", "he", "the", "."), entities=5))

    counts, tags = measure_unknown(documents_of(corpus(tmp_path)), lexicon)

    assert (counts.correct, counts.expected) == (1, 1)
    assert counts.found == sum(tags.values())
    assert tags["NOUN"] == 1
