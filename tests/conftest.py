"""Rules for all tests: a skip is a failure unless it is allowed by name."""

from __future__ import annotations

from pathlib import Path

import pytest

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every skip that nobody allowed."""
    for nodeid in _forbidden(terminalreporter):
        terminalreporter.write_line(f"FORBIDDEN SKIP {nodeid}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run on a skip that is not listed in allowed_skips.txt."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _forbidden(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _forbidden(reporter: pytest.TerminalReporter) -> list[str]:
    lines = ALLOWED_SKIPS.read_text().splitlines() if ALLOWED_SKIPS.exists() else []
    allowed = {line.split("#")[0].strip() for line in lines}
    skipped = reporter.stats.get("skipped", [])
    return sorted({report.nodeid for report in skipped if hasattr(report, "nodeid")} - allowed)
