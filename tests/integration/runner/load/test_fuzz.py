"""A campaign of damaged answers, with its own seed; `make fuzz` runs ten times as many."""

from __future__ import annotations

from bench.fuzz.campaign import campaign

MUTANTS = 100_000


def test_a_hundred_thousand_damaged_answers() -> None:
    told = campaign(MUTANTS, processes=2)
    assert sum(told.verdicts.values()) == MUTANTS
    assert told.verdicts["completed"] > MUTANTS / 20  # some damage does no harm, e.g. inside a text
    assert len(told.verdicts) > 20
    assert told.found == []
