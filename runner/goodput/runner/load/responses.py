"""From the records of one spool to the requests that have ended: one parser for each that is under way (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from goodput.runner.load import spool
from goodput.runner.load.parse import CountTokens, Parsed, ResponseParser


class Responses:
    """Takes records in the spool's order.

    Attributes:
        open: parsers of the requests that have not ended.
        reads: records that hold bytes of a response.

    Args:
        output_tokens: as asked, by request.
        count_tokens: see `ResponseParser`.
    """

    def __init__(self, output_tokens: Callable[[int], int], count_tokens: CountTokens | None = None) -> None:
        self.open: dict[int, ResponseParser] = {}
        self.reads = 0
        self._output_tokens, self._count_tokens = output_tokens, count_tokens

    def take(self, records: Iterable[spool.Record]) -> Iterator[tuple[int, Parsed]]:
        """The requests that end in these records, and what became of them."""
        parsers = self.open
        for request, kind, stamp, body in records:
            parser = parsers.get(request)
            if parser is None:
                parser = parsers[request] = ResponseParser(self._output_tokens(request), self._count_tokens)
            if kind <= spool.READ_USER:
                self.reads += 1
                parser.read(body, stamp, kernel=kind == spool.READ_KERNEL)
            elif kind == spool.RETRIED:
                parser.restart()
            else:
                del parsers[request]
                yield request, parser.finish(kind, stamp, body)
