"""Every way an answer can go, with the truth about it: what a load client must be able to tell apart.

A client that asks for the catalogue's number of tokens must complete the successes and nothing else.
"""

from __future__ import annotations

from bench.golden.build import Endpoint, Maker
from bench.golden.failures import failures
from bench.golden.script import Case, Match, Script, Stream
from bench.golden.successes import successes

ASKED = 8


def cases(endpoint: Endpoint, asked: int = ASKED) -> tuple[Case, ...]:
    """All cases for one endpoint; what hangs comes last."""
    make = Maker(endpoint, asked)
    return (*successes(make), *failures(make))


def catalogue(endpoint: Endpoint, asked: int = ASKED, match: Match = "order") -> Script:
    """The cases as a script; requests beyond them get a quick proper stream."""
    return Script(
        requests=cases(endpoint, asked), default=Case("default", Stream(tokens=asked), tokens=asked), match=match
    )
