"""The grammar of storyworld: hidden traits of entities, and the phrases that show them.

    sentence  -> part "."  |  part connective last part "."
    part      -> opening [e] clause
    last part -> opening [e] last clause
    clause    -> ... | gift [receiver]  |  "called for" call [e] last clause

An opening or a call precedes the mention and shows a trait of the entity mentioned next, so traits
predict who is mentioned; a clause follows the mention, so traits predict what follows. Who is
mentioned depends on how many sentences ago the entity was last mentioned. All entities of a
sentence differ, so what a sentence says about an entity matters only after the sentence.

The trade of an entity never changes; its temper may drift; its place changes when the text says so
and sometimes without notice; its thing changes when it is found, lost or given away, and the text
always says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from dntm.settings import read_yaml

Phrase = tuple[str, ...]


class Does(Enum):
    """The relation between a kind of phrase and its trait.

    NOTHING: the phrase is independent of all traits. SHOW: it is drawn given the trait. CHANGE: it
    states the trait's new value, drawn uniformly. GIVE: it shows the trait, which then passes to
    the entity mentioned next. CALL: it introduces another entity, whose traits are shown next.
    """

    NOTHING, SHOW, CHANGE, GIVE, CALL = range(5)


class Trait(NamedTuple):
    """A hidden property of an entity, drawn uniformly at its first mention."""

    values: int
    drift: float = 0.0
    """Probability of being redrawn after a sentence that mentions the entity."""


class Kind(NamedTuple):
    """Phrases for each value of a trait; equally likely given the value."""

    weight: float
    does: Does
    phrases: Sequence[Sequence[Phrase]]
    trait: int = -1
    slip: float = 0.0
    """Probability that the phrase is drawn for a random value instead."""

    @property
    def shows(self) -> bool:
        """Whether the phrase depends on the trait."""
        return self.does in (Does.SHOW, Does.GIVE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar:
    """All parameters of the distribution of stories."""

    traits: Sequence[Trait]
    openings: Sequence[Kind]
    clauses: Sequence[Kind]
    calls: Sequence[Kind]
    connectives: Sequence[str]
    stop: float
    """Probability that a sentence ends after its first part."""
    recency: Sequence[float] = (0.0, 3.0, 2.0, 1.0)
    """Weight of an entity last mentioned 0, 1, 2, and 3 or more sentences ago."""
    unseen: float = 2.0
    """Weight of a new entity."""
    entities: int = 8
    """Maximum number of entities in a story."""

    @property
    def last_clauses(self) -> Sequence[Kind]:
        """The clauses after which no other entity is mentioned."""
        return [kind for kind in self.clauses if kind.does not in (Does.GIVE, Does.CALL)]


def read_grammar(path: Path) -> Grammar:
    """Read a grammar from YAML; its first lines say how phrases are written."""
    found = read_yaml(path)
    traits = found["traits"]
    rules: dict[str, Any] = {"connectives": found["connectives"], "stop": found["stop"]}
    for position in ("openings", "calls", "clauses"):
        rules[position] = [_kind(spec, traits) for spec in found[position]]
    sizes = [Trait(len(trait["values"]), trait["drift"]) for trait in traits.values()]
    return Grammar(traits=sizes, **rules)


def _kind(spec: Mapping[str, Any], traits: Mapping[str, Any]) -> Kind:
    """Fill the template with each value of the trait."""
    trait = spec.get("trait")
    rows: list[list[Phrase]] = []
    for name, listed in traits[trait]["values"].items() if trait else [("", ())]:
        template = spec["phrases"] if rows else spec.get("first", spec["phrases"])
        parts = [part.split("/") for part in template.format(name, *listed).split("|")]
        rows.append([tuple(" ".join(chosen).split()) for chosen in product(*parts)])
    number = [*traits].index(trait) if trait else -1
    return Kind(spec["weight"], Does[spec["does"].upper()], rows, number, spec.get("slip", 0.0))


STORYWORLD = read_grammar(Path(__file__).with_name("storyworld.yaml"))
