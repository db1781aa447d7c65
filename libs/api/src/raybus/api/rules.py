"""Rules by which an object is refused, each told once: for `decide` in Python, for the API server in CEL (ADR 0133)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
U = TypeVar("U")

Found = bool | tuple[str, ...]
"""Whether a rule is broken; where its sentence names something: the names, or False."""


class Cel(NamedTuple):
    """A rule as the API server checks it: `when` is of type bool and true for what is refused, each of `values` is of
    type string and fills one `{}` of the sentence. Both see `object`, the variables of the policy, and `part`."""

    when: str
    values: tuple[str, ...] = ()


class NotInCel(NamedTuple):
    """Only `decide` checks the rule; `why` is for the page that lists the rules."""

    why: str


class Rule(NamedTuple, Generic[T]):
    """`sentence`: for the user; `{}` are filled by what `breaks` finds, `{where}` is the part that is looked at.

    `about`: what is wrong, for the page of the rules, where the sentence tells nothing before it is filled.
    """

    sentence: str
    breaks: Callable[[T], Found]
    cel: Cel | NotInCel
    about: str = ""

    def problem(self, subject: T, where: str = "") -> str | None:
        """The sentence, if `subject` breaks the rule."""
        found = self.breaks(subject)
        if not found:
            return None
        return self.sentence.format(*(found if isinstance(found, tuple) else ()), where=where)


class Each(NamedTuple, Generic[T, U]):
    """Rules of the parts of an object: the first part that breaks one, and the first that it breaks.

    `cel`: list of the same parts, `cel_where`: what `where` says of `part`. `name`: of the policy's variable.
    """

    name: str
    parts: Callable[[T], Iterable[U]]
    where: Callable[[U], str]
    cel: str
    cel_where: str
    rules: tuple[Rule[U], ...]

    def broken(self, subject: T) -> Iterator[tuple[Rule[Any], str]]:
        """Every rule that a part breaks, part after part."""
        for part in self.parts(subject):
            for rule in self.rules:
                if (text := rule.problem(part, self.where(part))) is not None:
                    yield rule, text


Chain = Sequence[Rule[T] | Each[T, Any]]


def broken(chain: Chain[T], subject: T) -> Iterator[tuple[Rule[Any], str]]:
    """Every rule that `subject` breaks with its sentence, in their order and only as far as they are asked for."""
    for entry in chain:
        if isinstance(entry, Each):
            yield from entry.broken(subject)
        elif (text := entry.problem(subject)) is not None:
            yield entry, text


def first_problem(chain: Chain[T], subject: T) -> str | None:
    """The sentence of the first rule that `subject` breaks, None for a sound one."""
    return next((text for _, text in broken(chain, subject)), None)


def flat(chain: Chain[Any]) -> Iterable[Rule[Any]]:
    """Every rule of a chain in its order."""
    for entry in chain:
        yield from entry.rules if isinstance(entry, Each) else (entry,)


class Policy(NamedTuple, Generic[T]):
    """All rules of a kind that the API server may check, in the order in which `decide` does.

    `variables`: CEL by name; each may use those before it.
    """

    kind: str
    plural: str
    variables: dict[str, str]
    chain: Chain[T]
