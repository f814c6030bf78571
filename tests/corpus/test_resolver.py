"""The resolver, over a tiny stanza model that is built, saved and loaded again offline."""

import socket
import sys
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.document import Document, Mention, check
from dntm.corpus.resolver import StanzaResolver

WORDS = ["Anna", "met", "a", "dog", ".", "She", "liked", "it", "un", "##know", "##n", "_"]
TEXT = [["Anna", "met", "a", "dog", "."], [], ["She", "liked", "it", "."], ["unknown", "dog"]]
SETTINGS: dict[str, Any] = {
    **dict.fromkeys(["data_dir", "save_dir", "train_data", "dev_data", "test_data"], ""),
    **dict.fromkeys(["conll_log_dir", "lang_lr_attenuation", "lang_lr_weights"], ""),
    **dict.fromkeys(["bert_finetune", "save_each_checkpoint", "log_norms", "use_zeros"], False),
    **dict.fromkeys(["full_pairwise", "clusters_starts_are_singletons", "singletons"], True),
    **dict.fromkeys(["lora_dropout", "dropout_rate", "bce_loss_weight"], 0.5),
    **dict.fromkeys(["learning_rate", "bert_learning_rate"], 0.1),
    **dict.fromkeys(["section", "save_name"], "tiny"),
    **dict.fromkeys(["hidden_size", "a_scoring_batch_size", "max_span_len"], 8),
    **dict.fromkeys(["embedding_size", "lora_alpha", "rough_k"], 4),
    **dict.fromkeys(["n_hidden_layers", "lora_rank", "train_epochs"], 1),
    **dict.fromkeys(["bert_finetune_begin_epoch", "plateau_epochs"], 0),
    **dict.fromkeys(["sp_embedding_size", "max_train_len"], 64),
    "device": "cpu",
    "tokenizer_kwargs": {},
    "bert_window_size": 16,
    "lora_target_modules": ["query", "value"],
    "lora_modules_to_save": [],
}

needs_stanza = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("stanza", "transformers", "peft")),
    reason='the extra "coref" is not installed',
)


def build(folder: Path, *, lora: bool) -> Path:
    """A randomly initialized model, saved the way stanza saves one."""
    import torch
    from stanza.models.coref.config import Config
    from stanza.models.coref.model import CorefModel

    transformers = import_module("transformers")
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    bert = folder / "bert"
    bert.mkdir()
    (bert / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    transformers.BertTokenizer(
        vocab={word: row for row, word in enumerate(words)}, do_lower_case=False
    ).save_pretrained(bert)
    transformers.AutoModel.from_config(
        transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=32,
        )
    ).save_pretrained(bert)
    model = CorefModel(
        config=Config(**SETTINGS, bert_model=str(bert), lora=lora), build_optimizers=False
    )
    weights = folder / "en" / "coref" / "tiny.pt"
    model.save_weights(str(weights), save_optimizers=False)
    return weights


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was asked of the network, which gives nothing."""
    asked: list[object] = []

    def refuse(*request: object, **_: object) -> None:
        asked.append(request)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


@pytest.fixture(scope="module", params=[True, False], ids=["lora", "frozen"])
def weights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("coref"), lora=request.param)


def test_without_the_extra_the_error_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)

    with pytest.raises(ValueError, match=r'needs stanza.*pip install "dntm\[coref\]"'):
        StanzaResolver(tmp_path)


@needs_stanza
@pytest.mark.parametrize("name", ["", "nowhere", "nowhere.pt"])
def test_missing_weights_are_named_with_the_way_to_get_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"found none .*stanza.download") as error:
        StanzaResolver(tmp_path / name)

    assert str(tmp_path / name) in str(error.value)


@needs_stanza
@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 cut short"])
def test_a_file_of_another_kind_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=r"model\.pt is not a stanza model: \S"):
        StanzaResolver(path)


@needs_stanza
def test_a_transformer_that_is_not_here_is_named_and_not_downloaded(
    weights: Path, no_network: list[object], tmp_path: Path
) -> None:
    import torch

    saved = torch.load(weights, weights_only=True)
    saved["config"]["bert_model"] = "nobody/no-such-transformer"
    torch.save(saved, tmp_path / "changed.pt")

    with pytest.raises(ValueError, match=r"transformer 'nobody/no-such-transformer', which is not"):
        StanzaResolver(tmp_path / "changed.pt")

    assert no_network == []


@needs_stanza
def test_the_model_loads_from_disk_alone_and_its_mentions_lie_inside_the_sentences(
    weights: Path, no_network: list[object]
) -> None:
    resolver = StanzaResolver(weights)

    chains = resolver.chains(TEXT * 5)

    check(Document(name="a", sentences=TEXT * 5, chains=chains))
    assert resolver.chains([]) == resolver.chains([["dog"]]) == []
    assert max(map(len, chains)) > 2
    assert min(map(len, chains)) > 1
    assert no_network == []


@needs_stanza
@pytest.mark.parametrize("repeats", [1, 5])
def test_the_mentions_are_those_of_stanzas_own_pipeline(
    weights: Path, repeats: int, tmp_path: Path
) -> None:
    import stanza

    text = [sentence for sentence in TEXT if sentence] * repeats
    (tmp_path / "resources.json").write_text("{}", encoding="utf-8")
    pipeline = stanza.Pipeline(
        "en",
        dir=str(tmp_path),
        processors="tokenize,coref",
        allow_unknown_language=True,
        tokenize_pretokenized=True,
        coref_model_path=str(weights),
        download_method=None,
        use_gpu=False,
        logging_level="ERROR",
    )
    expected = [
        {
            Mention(mention.sentence, mention.start_word, mention.end_word)
            for mention in chain.mentions
            if isinstance(mention.start_word, int)
        }
        for chain in pipeline(text).coref
    ]
    times = Counter(mention for chain in expected for mention in chain)
    alone = [{mention for mention in chain if times[mention] == 1} for chain in expected]
    certain = {mention for chain in alone if len(chain) > 1 for mention in chain}

    chains = StanzaResolver(weights).chains(text)

    found = [mention for chain in chains for mention in chain]
    assert set() != certain <= set(found) <= set(times)
    assert len(found) == len(set(found))


@needs_stanza
@pytest.mark.parametrize("word", ["[SEP]", "[PAD]", "", "\x00", "\u200b"])
def test_a_word_that_the_tokenizer_loses_shifts_no_other(weights: Path, word: str) -> None:
    resolver = StanzaResolver(weights)

    chains = resolver.chains([["Anna", word, "met", "it"], *TEXT * 3])

    assert chains == resolver.chains([["Anna", "_", "met", "it"], *TEXT * 3]) != []
