"""`dntm data list`: the corpora known by name."""

from dataclasses import dataclass

from dntm.corpus.catalog import CORPORA

_HOW = {
    "package": "comes with the installation",
    "generated": "made by this program",
    "git": "fetched with git when first built",
    "given": "to be given with --from",
}


@dataclass(frozen=True)
class Command:
    """List the corpora that `dntm data build NAME` knows."""

    def run(self) -> None:
        """Print name, summary, licence and origin."""
        for corpus in CORPORA.values():
            print(f"{corpus.name:<11} {corpus.summary}")
            print(f"{'':<11} licence: {corpus.licence}")
            print(f"{'':<11} {_HOW[corpus.how]}", end="")
            print(f": {corpus.repository} at {corpus.commit[:7]}" if corpus.commit else "")
