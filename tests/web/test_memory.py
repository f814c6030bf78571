from dntm.reader.reading import SentenceReading
from dntm.web.readings import Memory


def sentences(count: int) -> list[SentenceReading]:
    return [SentenceReading(index=index, tokens=(), entities=()) for index in range(count)]


def test_the_reading_used_longest_ago_is_forgotten_first() -> None:
    memory = Memory(5)
    memory.keep("a", sentences(2))
    memory.keep("b", sentences(2))
    memory.recall("a")

    memory.keep("c", sentences(3))

    assert [len(memory.recall(name)) for name in "abc"] == [2, 0, 3]


def test_a_reading_under_way_is_never_forgotten() -> None:
    memory = Memory(3)
    memory.begin("a")
    memory.keep("a", sentences(2))

    memory.keep("b", sentences(3))

    assert [len(memory.recall(name)) for name in "ab"] == [2, 1]
    memory.end("a")
    memory.keep("b", sentences(3))
    assert [len(memory.recall(name)) for name in "ab"] == [0, 3]


def test_what_is_remembered_has_no_gap() -> None:
    memory = Memory(10)
    first, second, third = sentences(3)

    for sentence in (first, third, second):
        memory.add("a", sentence)

    assert memory.recall("a") == (first, second)


def test_the_limit_binds_a_single_reading_too() -> None:
    memory = Memory(3)
    memory.begin("a")

    for sentence in sentences(8):
        memory.add("a", sentence)

    assert len(memory) == 3
    assert [sentence.index for sentence in memory.recall("a")] == [0, 1, 2]
