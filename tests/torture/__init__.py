"""`make torture`: damaged input, kills and rude clients, many of each, from a seed.

    trying.py     what is counted, and how bytes and JSON are damaged
    readers.py    damaged corpora, vectors and lists; shapes that once took long
    saved.py      damaged checkpoints, states, datasets, stores and settings
    kills.py      kill -9 at any moment of train, pretrain, data build and reproduce
    page.py       odd requests, many readers, clients that say or take nothing

It prints the table of docs/reliability.md. A small sample of each is part of the tests.
"""
