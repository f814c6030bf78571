from dntm.reader.reading import SentenceReading
from dntm.web.readings import Memory


def sentences(count: int) -> list[SentenceReading]:
    return [SentenceReading(index=index, tokens=(), entities=()) for index in range(count)]


def test_the_least_recently_used_reading_is_forgotten_first() -> None:
    memory = Memory(5)
    memory.keep("a", sentences(2))
    memory.keep("b", sentences(2))
    memory.recall("a")

    memory.keep("c", sentences(3))

    assert [len(memory.recall(name)) for name in "abc"] == [2, 0, 3]
