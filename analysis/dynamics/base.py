"""What both sections on learning dynamics show in the same order."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from analysis.section.blocks import Block, Details, Heading, Shown, Text
from analysis.section.claim import Claim
from analysis.section.dynamics import Dynamics
from analysis.section.parts import claim_details


class DynamicsSection(Dynamics, abc.ABC):
    """See `analysis.section.base.Section`.

    Attributes:
        about: what it is, in a sentence or two.
    """

    about: str

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """Its heading, without the key."""

    @property
    @abc.abstractmethod
    def claims(self) -> list[Claim]:
        """In the order of the paper, each in several settings."""

    @abc.abstractmethod
    def lines(self) -> list[str]:
        """The terminal's lines between the title and the claims."""

    @abc.abstractmethod
    def warnings(self) -> list[str]:
        """Sentences on what is missing, and why."""

    @abc.abstractmethod
    def details(self) -> list[Block]:
        """What is folded below the figures and the claims."""

    def text(self, published: bool = False) -> str:
        """For the terminal: a claim is a line, with its verdict in each setting."""
        verdicts: dict[str, list[str]] = {}
        for claim in self.claims:
            statement = claim.statement.removeprefix("Fixed focus: ").removesuffix(".")
            said = verdicts.setdefault(f"{claim.name} {statement}", [])
            said.append(f"{claim.verdict} ({claim.setting})")
        claims = [f"{claim}: {'; '.join(said)}" for claim, said in verdicts.items()]
        return "\n".join([self.title, "", *self.lines(), *claims])

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        return [
            Text(self.about, "quiet"),
            *(Text(text, "warning") for text in self.warnings()),
            *([Heading("Figures")] if shown else []),
            *shown,
            *claim_details(self.claims),
            *self.details(),
            Details("Repeat any cell", self.repeat_blocks(results)),
        ]
