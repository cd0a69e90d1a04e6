from __future__ import annotations

from pathlib import Path

import pytest

from goodput.analysis.schema.commit import Commit
from goodput.analysis.store import Store, StoreError, open_store
from goodput.runner import committer as module
from goodput.runner.committer import Committer
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import StoreRefusedError
from goodput.runner.spool import Committed, TrialSpool
from goodput.runner.status import Board
from goodput.runner.stop import Stop


class Door:
    """Opens the store, or refuses so many times."""

    def __init__(self, store: Store, refusals: float) -> None:
        self.store, self.refusals = store, refusals

    def __call__(self) -> Store:
        if self.refusals > 0:
            self.refusals -= 1
            raise StoreError("opening", PermissionError("403"))
        return self.store


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.0,))
    monkeypatch.setattr(module, "LISTING_SECONDS", 0.02)
    monkeypatch.setattr(module, "FIRST_LISTING_SECONDS", 0.02)


@pytest.fixture
def spool(tmp_path: Path, plan: TrialPlan, commit: Commit) -> TrialSpool:
    spool = TrialSpool(tmp_path / "spool", plan)
    cell = spool.cell(commit.key.load)
    cell.begin(0.0)
    cell.stage({"cell.json": b"{}"}, commit)
    return spool


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri())


def committer(door: Door, spool: TrialSpool, plan: TrialPlan) -> tuple[Committer, Board]:
    board = Board(plan)
    return Committer(door, spool, plan, board), board


def test_a_refusal_is_shown_and_gone_when_the_store_is_back(store: Store, spool: TrialSpool, plan: TrialPlan) -> None:
    subject, board = committer(Door(store, 1), spool, plan)
    assert not subject.flush()
    assert (board.status.upload_error or "").startswith("UploadDenied")
    assert subject.pending() == [plan.loads[0].load.id]
    assert subject.flush()
    assert board.status.upload_error is None
    assert subject.pending() == []
    assert spool.cell(plan.loads[0].load.id).committed == Committed(outcome="valid")


def test_holding_lasts_until_the_store_is_back(store: Store, spool: TrialSpool, plan: TrialPlan) -> None:
    subject, _ = committer(Door(store, 20), spool, plan)
    assert subject.hold(60, Stop())


def test_holding_ends(store: Store, spool: TrialSpool, plan: TrialPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, _ = committer(Door(store, float("inf")), spool, plan)
    assert not subject.hold(0.01, Stop())
    stop = Stop()
    stop.set()
    monkeypatch.setattr(module, "STOPPING_SECONDS", 0.0)
    assert not subject.hold(3600, stop)
    assert not subject.hold(3600, Stop(), enough=lambda: True)
    assert subject.pending()


def test_the_first_attempt_goes_on_without_a_listing_a_later_one_does_not(
    store: Store, spool: TrialSpool, plan: TrialPlan
) -> None:
    later, _ = committer(Door(store, float("inf")), spool, plan)
    with pytest.raises(StoreRefusedError) as caught:
        later.known(Stop())
    assert caught.value.reason == "UploadDenied"
    first, _ = committer(Door(store, float("inf")), spool, plan.model_copy(update={"attempt": 1}))
    assert first.known(Stop()) == {}


def test_what_spool_or_store_have_is_known(store: Store, spool: TrialSpool, plan: TrialPlan) -> None:
    subject, _ = committer(Door(store, 0), spool, plan)
    assert subject.known(Stop()) == {}
    subject.flush()
    assert subject.known(Stop()) == {plan.loads[0].load.id: Committed(outcome="valid")}
