"""Presets: whole studies as data.

`paper` is Section 5: thirteen models, three seeds, 512 units, the paper's recipe. `small` is the
same study at a size that two cores finish in two to three hours on OntoGUM (`docs/log.md`), with
what `modern` brought on small corpora. `quick` is a first look in minutes: A and D, one seed.
"""

from dataclasses import replace

from dntm.corpus.build import BuildConfig
from dntm.corpus.prepare import ReadConfig
from dntm.experiments.recipes import PRETRAINING, RECIPES
from dntm.experiments.study import StudyConfig

_MODERN, _MODERN_TRAINING = RECIPES["modern"]
_QUICK, _QUICK_TRAINING = RECIPES["quick"]
_, _PRETRAINING, _STORE = PRETRAINING["small"]

PRESETS: dict[str, StudyConfig] = {
    "paper": StudyConfig(preset="paper"),
    "small": StudyConfig(
        preset="small",
        pretraining=replace(_PRETRAINING, iterations=10_000),
        store=_STORE,
        build=BuildConfig(max_sentences=28),
        model=replace(_MODERN, embedding_dim=128, hidden_dim=128, encoder_dim=128, context_dim=128),
        training=replace(
            _MODERN_TRAINING, learning_rate=3e-3, epochs=5, validations=1, average=0.995
        ),
    ),
    "quick": StudyConfig(
        preset="quick",
        pretraining=replace(_PRETRAINING, iterations=1_000),
        store=_STORE,
        models=("A", "D-gru-relu"),
        seeds=(1,),
        reading=ReadConfig(limit=50),
        build=BuildConfig(vocabulary_size=5000),
        model=_QUICK,
        training=_QUICK_TRAINING,
    ),
}
