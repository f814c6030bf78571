"""Damaged input and kill -9, a few of each, or many (`make torture`, docs/reliability.md).

trying.py     counts, and how bytes and JSON are damaged
readers.py    damaged corpora, vectors and lists
saved.py      damaged checkpoints, states, datasets, stores and settings
kills.py      kill -9 at random moments of train, pretrain, data build and reproduce
"""
