"""`make torture`: damaged input, kill -9 and odd requests, many of each, from a seed.

    trying.py     counts, and how bytes and JSON are damaged
    readers.py    damaged corpora, vectors and lists; shapes that once were slow
    saved.py      damaged checkpoints, states, datasets, stores and settings
    kills.py      kill -9 at random moments of train, pretrain, data build and reproduce
    page.py       odd requests and many readers at once

It prints the number of attempts and of problems (docs/reliability.md). A small sample of each is
part of the tests.
"""
