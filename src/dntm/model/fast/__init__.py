"""The numbers of `dntm.model.reference`, fast: `read.read` is the one entrance.

window.py         BPTT windows: which sentences can be encoded side by side, and in which order
encoding.py       what the context encoder reads in which call
layout.py         how tokens lie in memory: ragged sequences, segments of constant width
entity_memory.py  the table of all states d_{e,i}
recurrence.py     an LSTM over many short sequences, and matrices used in many narrow products
read.py           read(model, window, state) -> what was read
filling.py        every candidate in every gap, over what was read
"""
