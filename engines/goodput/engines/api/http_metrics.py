"""The `http_*` metrics that vLLM gets from prometheus-fastapi-instrumentator, by the same names."""

import time

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary

_EXCLUDED = frozenset({"/metrics", "/health", "/load", "/ping", "/version", "/server_info"})
_HIGH_RESOLUTION = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5),
    *(10.0, 30.0, 60.0),
)
_LOW_RESOLUTION = (0.1, 0.5, 1.0)


class HttpMetrics:
    """Counts requests by handler, method and status class."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "http_requests_total",
            "Total number of requests by method, status and handler.",
            ("method", "status", "handler"),
            registry=registry,
        )
        self._request_size = Summary(
            "http_request_size_bytes",
            "Content length of incoming requests by handler. Only value of header is respected. "
            "Otherwise ignored. No percentile calculated. ",
            ("handler",),
            registry=registry,
        )
        self._response_size = Summary(
            "http_response_size_bytes",
            "Content length of outgoing responses by handler. Only value of header is respected. "
            "Otherwise ignored. No percentile calculated. ",
            ("handler",),
            registry=registry,
        )
        self._duration_fine = Histogram(
            "http_request_duration_highr_seconds",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            buckets=_HIGH_RESOLUTION,
            registry=registry,
        )
        self._duration = Histogram(
            "http_request_duration_seconds",
            "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
            ("method", "handler"),
            buckets=_LOW_RESOLUTION,
            registry=registry,
        )

    @property
    def middleware(self) -> Middleware:
        """For the aiohttp application."""

        @web.middleware
        async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path in _EXCLUDED or request.match_info.route.resource is None:
                return await handler(request)
            begin = time.perf_counter()
            response = await handler(request)
            self._observe(request, response, time.perf_counter() - begin)
            return response

        return measure

    def _observe(self, request: web.Request, response: web.StreamResponse, seconds: float) -> None:
        path, method = request.path, request.method
        self._requests.labels(method, f"{response.status // 100}xx", path).inc()
        self._request_size.labels(path).observe(request.content_length or 0)
        length = response.content_length if isinstance(response, web.Response) else None
        self._response_size.labels(path).observe(length or 0)
        self._duration_fine.observe(seconds)
        self._duration.labels(method, path).observe(seconds)
