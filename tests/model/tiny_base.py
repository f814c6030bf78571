"""A tiny random Llama with a tokenizer of letters and a few words, as a folder of transformers."""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from dntm.model.base_model import BaseModel
from dntm.model.config import ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel

TEXT = "the old heron saw it rained and swam away slept small fish ate . , ( )"


def write_base(folder: Path, *, seed: int = 7, adds_blank: bool = False) -> Path:
    """Write the model and return its folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    transformers: Any = import_module("transformers")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=adds_blank)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([f" {TEXT}"] * 3, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|endoftext|>"
    )
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(fast),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.4,
        tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def build(base: BaseModel, variant: Variant = "both", **settings: object) -> DynamicTextModel:
    """A model whose parameters are all large enough to matter."""
    generator = torch.Generator().manual_seed(3)
    dim = base.x.shape[1]
    config = ModelConfig(
        core=base.name,
        variant=variant,
        vocabulary=len(base.vocabulary(3)),
        entities=3,
        embedding_dim=dim,
        hidden_dim=dim,
        context_dim=5,
        **settings,  # type: ignore[arg-type]
    )
    model = DynamicTextModel(config, generator).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model
