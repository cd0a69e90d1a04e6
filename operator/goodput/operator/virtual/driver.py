"""The loop of virtual time: look, plan, act, and let the clock jump where nothing is to be done."""

from __future__ import annotations

from collections.abc import Callable

from goodput.operator.observed import Observed
from goodput.operator.plan import Plan, plan
from goodput.operator.plan.phase import TERMINAL
from goodput.operator.virtual.world import VirtualWorld

Watch = Callable[[Observed, Plan, float], None]
"""Told of each look: what is there, what is planned, and the virtual clock."""


def run(world: VirtualWorld, watch: Watch) -> Plan:
    """Drive a sweep to its end; its last plan holds the final status.

    Raises:
        StoreError: the store refuses a record: a simulation can be run again, so nothing waits for it.
    """
    while True:
        observed = world.observe()
        planned = plan(world.sweep, observed, world.now)
        world.status = planned.status
        watch(observed, planned, world.now)
        if planned.status.get("phase") in TERMINAL:
            return planned
        for action in planned.actions:
            world.execute(action)
        if not planned.actions:
            world.pass_until(world.now + (planned.next_look_seconds or 0.0))
