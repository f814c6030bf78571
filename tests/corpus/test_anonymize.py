from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.anonymize import AnonymizeConfig, mark_chains
from dntm.corpus.dataset import from_json, to_json
from dntm.corpus.document import AnonymizedDocument, Document, Mention

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=4)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    sentences = draw(st.lists(st.lists(WORDS, min_size=1, max_size=7), min_size=1, max_size=9))
    chains: list[list[Mention]] = []
    for _ in range(draw(st.integers(0, 5))):
        chain = []
        for _ in range(draw(st.integers(1, 4))):
            sentence = draw(st.integers(0, len(sentences) - 1))
            start = draw(st.integers(0, len(sentences[sentence]) - 1))
            end = draw(st.integers(start + 1, len(sentences[sentence])))
            chain.append(Mention(sentence, start, end))
        chains.append(sorted(set(chain)))
    return Document(
        name="d", sentences=sentences, chains=chains[1:], named_entities=chains[0] if chains else []
    )


def anonymize(document: Document, config: AnonymizeConfig) -> AnonymizedDocument:
    return mark_chains(document, (), config).anonymized(lower_case=config.lower_case)


CONFIGS = st.builds(
    AnonymizeConfig,
    nested=st.sampled_from(["innermost", "outermost"]),
    keep_single=st.booleans(),
    named_entities=st.booleans(),
)


def restored(document: AnonymizedDocument) -> list[list[str]]:
    surfaces = iter(document.surfaces)
    return [
        [w for t in sentence for w in ([t] if isinstance(t, str) else next(surfaces))]
        for sentence in document.sentences
    ]


def assert_numbered_by_first_appearance(document: AnonymizedDocument) -> None:
    tokens = [t for s in document.sentences for t in s if isinstance(t, int)]
    assert list(dict.fromkeys(tokens)) == list(range(1, len(set(tokens)) + 1))


@given(documents(), CONFIGS)
def test_every_entity_token_is_a_mention_and_every_other_word_is_untouched(
    doc: Document, config: AnonymizeConfig
) -> None:
    mentions = {m for chain in (*doc.chains, doc.named_entities) for m in chain}
    result = anonymize(doc, config)
    surfaces = iter(result.surfaces)

    assert_numbered_by_first_appearance(result)
    for s, sentence in enumerate(result.sentences):
        position = 0
        for token in sentence:
            if isinstance(token, int):
                words = next(surfaces)
                assert Mention(s, position, position + len(words)) in mentions
                position += len(words)
            else:
                assert token == doc.sentences[s][position]
                position += 1


@given(documents(), st.integers(1, 4))
def test_parts_join_to_the_whole_and_number_their_entities_anew(doc: Document, most: int) -> None:
    whole = mark_chains(doc, (), AnonymizeConfig(keep_single=True))

    parts = [part.anonymized(lower_case=False) for part in whole.parts(most)]

    assert [s for part in parts for s in restored(part)] == doc.sentences
    assert all(len(part.sentences) <= most for part in parts)
    for part in parts:
        assert_numbered_by_first_appearance(part)


@given(documents(), CONFIGS)
def test_any_document_survives_the_file_format(doc: Document, config: AnonymizeConfig) -> None:
    document = anonymize(doc, config)

    assert to_json(from_json(to_json(document))) == to_json(document)
    assert from_json(to_json(document)).sentences == document.sentences


def nested() -> Document:
    return Document(
        name="d",
        sentences=[["the", "king", "of", "Spain", "slept"], ["he", "left", "Spain"]],
        chains=[[Mention(0, 0, 4), Mention(1, 0, 1)], [Mention(0, 3, 4), Mention(1, 2, 3)]],
    )


def test_the_innermost_mention_is_kept_or_the_outermost_on_request() -> None:
    innermost = anonymize(nested(), AnonymizeConfig())
    outermost = anonymize(nested(), AnonymizeConfig(nested="outermost"))

    assert innermost.sentences == [["the", "king", "of", 1, "slept"], [2, "left", 1]]
    assert outermost.sentences == [[1, "slept"], [1, "left", 2]]


def test_chains_of_a_single_mention_are_dropped_unless_kept() -> None:
    document = Document(name="d", sentences=[["a", "b"]], chains=[[Mention(0, 0, 1)]])

    assert anonymize(document, AnonymizeConfig()).sentences == [["a", "b"]]
    assert anonymize(document, AnonymizeConfig(keep_single=True)).sentences == [[1, "b"]]


def test_a_dropped_chain_does_not_hide_the_mention_around_it() -> None:
    outer = [Mention(0, 0, 2), Mention(0, 2, 3)]
    document = Document(name="d", sentences=[["a", "b", "c"]], chains=[outer, [Mention(0, 1, 2)]])

    assert anonymize(document, AnonymizeConfig()).sentences == [[1, 1]]


def test_named_entities_outside_chains_get_identifiers_on_request() -> None:
    document = Document(
        name="d",
        sentences=[["Rome", "fell", "and", "Rome", "rose", "in", "May"]],
        named_entities=[Mention(0, 0, 1), Mention(0, 3, 4), Mention(0, 6, 7)],
    )

    result = anonymize(document, AnonymizeConfig(named_entities=True))

    assert result.sentences == [[1, "fell", "and", 1, "rose", "in", 2]]


def test_lower_case_changes_words_and_leaves_the_surfaces_as_written() -> None:
    upper = Document(name="u", sentences=[["Anna", "Slept"]])

    result = anonymize(nested(), AnonymizeConfig(lower_case=True, nested="outermost"))

    assert result.surfaces == [["the", "king", "of", "Spain"], ["he"], ["Spain"]]
    assert anonymize(upper, AnonymizeConfig(lower_case=True)).sentences == [["anna", "slept"]]
