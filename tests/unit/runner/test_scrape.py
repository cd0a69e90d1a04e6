from __future__ import annotations

import threading
from pathlib import Path

from goodput.runner.errors import ServerGoneError
from goodput.runner.scrape import Scraper, samples
from goodput.runner.snapshot import Snapshot


def test_samples_survive_in_the_file_and_a_failed_scrape_is_a_gap(tmp_path: Path) -> None:
    enough = threading.Event()
    stamps = iter(range(1000))

    def read() -> Snapshot:
        stamp = next(stamps)
        if stamp == 1:
            raise ServerGoneError("ReadTimeout", slow=True)
        if stamp >= 3:
            enough.set()
        return Snapshot(stamp=stamp, running=stamp)

    scraper = Scraper(read, tmp_path / "samples.jsonl", interval_seconds=0.001)
    scraper.start()
    assert enough.wait(30)
    scraper.stop()
    assert [sample.stamp for sample in samples(tmp_path / "samples.jsonl")][:3] == [0, 2, 3]


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text(Snapshot(stamp=1).model_dump_json() + '\n{"stamp": 2, "runn')
    assert samples(file) == (Snapshot(stamp=1),)


def test_no_file_no_samples(tmp_path: Path) -> None:
    assert samples(tmp_path / "none.jsonl") == ()
