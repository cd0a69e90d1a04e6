"""How long each wait may last, in seconds. Every wait has one; what it ends in is a reason of `reasons`."""

from __future__ import annotations

CANARY_DEADLINE_SECONDS = 900.0
"""The driver ends a canary after this: pulling the image, then a few requests to the store with retries."""

ANALYSIS_DEADLINE_SECONDS = 3900.0
"""The driver ends an analysis after this: it retries a refusing store for an hour itself (DESIGN §8)."""

ANALYSIS_ATTEMPTS = 3
"""How often the analysis of a block, or the final one, is started before it is given up."""

CAPACITY_TIMEOUT_SECONDS = 86_400.0
"""How long a server may wait for a free GPU, quota or a queue: a night is usual where GPUs are shared."""

RUNNER_START_TIMEOUT_SECONDS = 900.0
"""From the runner's creation to its container running: image pull included."""

RUNNER_GRACE_SECONDS = 120.0
"""From the request to stop to SIGKILL: enough to void a cell, commit and write the outcome (DESIGN §4.1)."""

RUNNER_BACKSTOP_SECONDS = 300.0
"""Beyond the runner's own deadline and upload hold; then the driver ends the trial."""

LOGS_TIMEOUT_SECONDS = 600.0
"""From the end of a trial; then it goes on without its logs rather than holding a GPU."""

MAX_DISRUPTIONS = 10
"""Disrupted attempts of one (block, config) before it is given up (DESIGN §9)."""

RESYNC_SECONDS = 60.0
"""The longest time between two looks while something runs: events can be lost."""

UPLOAD_HOLD_SECONDS = 3600.0
"""How long finished cells wait for a store that refuses (`TrialPlan.upload_hold_seconds`)."""
