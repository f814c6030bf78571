from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import Vocabulary
from dntm.reader.text import prepare
from dntm.web.readings import start_event
from dntm.web.server import Limits, ReadRequest

LEXICON = Lexicon(Vocabulary(("a", "b"), entities=4))
TEXTS = st.text(alphabet="aB1 .!?\"'()[]\n\r\t\x0b\x85\u2028é-…", max_size=60)


@given(TEXTS.filter(str.strip))
def test_the_sentences_on_the_page_join_to_the_text_that_is_read(text: str) -> None:
    request = ReadRequest.parse({"text": text}, Limits())

    sentences = start_event("x", prepare(request.text, LEXICON), LEXICON)["sentences"]

    paragraphs: dict[int, list[str]] = {}
    for sentence in sentences:
        paragraphs.setdefault(sentence["paragraph"], []).append(sentence["text"])
    assert "\n\n".join(map(" ".join, paragraphs.values())) == request.text
    assert "".join(request.text.split()) == "".join(text.split())


def test_a_name_is_unknown_if_its_last_word_is() -> None:
    words = ("uncle", "river", "saw", "the", "near", "Peter")
    lexicon = Lexicon(Vocabulary(words, entities=4))
    text = "The blicket saw Uncle Zorp near the Zorp River. Near the river Peter saw the blicket."

    start = start_event("x", prepare(text, lexicon), lexicon)

    assert {start["names"][str(n)] for n in start["unknown"]} == {"blicket", "Uncle Zorp"}
    assert {"Zorp River", "Peter"} <= set(start["names"].values())
