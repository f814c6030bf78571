"""Benchmarks: speed next to the naive implementation and the machine's limit.

    python -m benchmarks.train       training, next to a naive loop and the roofline
    python -m benchmarks.pretrain    pretraining, next to the limit of the machine
    python -m benchmarks.read        a long text, as `dntm score` reads it
    python -m benchmarks.data        reading plain text and building a dataset
    python -m benchmarks.baselines   our models and every baseline: training, scoring, cloze test

`make benchmark BENCHMARK=train` runs one of them; `--help` lists the options.
"""
