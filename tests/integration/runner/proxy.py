"""A proxy in front of a server: what it says about itself can be bent, the way a broken server would."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Self

import aiohttp
from aiohttp import web


class Proxy:
    """Passes everything on to ``url``, streams too.

    Attributes:
        metrics: makes the page of ``/metrics`` from the server's.
        body: makes the bytes of other answers.
        slow_when: `/metrics` takes ``slow_seconds`` for such a page.
        refuse_reset: the prefix cache is never reset.
        lie_about_resets: it says that the prefix cache was reset, and it was not.
        asked: paths of the requests so far, in their order.
        slow_resets: so many times more the server is too busy to answer to a reset for ``slow_seconds``.
    """

    def __init__(self, url: str) -> None:
        self.metrics: Callable[[str], str] = lambda page: page
        self.body: Callable[[bytes], bytes] = lambda data: data
        self.slow_when: Callable[[str], bool] = lambda _: False
        self.slow_seconds = 3.0
        self.refuse_reset = False
        self.lie_about_resets = False
        self.slow_resets = 0
        self.asked: list[str] = []
        self.url = ""
        self._target = url
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._closing = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._ready.set()
            await self._closing.wait()
            await runner.cleanup()
            late = asyncio.all_tasks() - {asyncio.current_task()}
            for task in late:  # answers that nobody waits for any more
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.refuse_reset and request.path == "/reset_prefix_cache":
            return web.json_response({"success": False})
        if self.lie_about_resets and request.path == "/reset_prefix_cache":
            return web.json_response({"success": True})
        if self.slow_resets and request.path == "/reset_prefix_cache":
            self.slow_resets -= 1
            await asyncio.sleep(self.slow_seconds)
        address, data = f"{self._target}{request.path_qs}", await request.read()
        headers = {"Content-Type": request.content_type}
        async with self._session.request(request.method, address, data=data, headers=headers) as answer:
            if request.path == "/metrics":
                return await self._page(await answer.text())
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(self.body(part))
            return response

    async def _page(self, page: str) -> web.Response:
        if self.slow_when(page):
            await asyncio.sleep(self.slow_seconds)
        return web.Response(text=self.metrics(page))


def value(page: str, name: str) -> float:
    """Value of the first sample of that name, its labels included; 0 where it is not there."""
    found = re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def changed(page: str, name: str, number: float) -> str:
    """The page with another value for that sample."""
    return re.sub(rf"^({re.escape(name)}(?:{{[^}}]*}})?) \S+$", rf"\g<1> {number}", page, flags=re.MULTILINE)


def busy(page: str) -> bool:
    """Requests are running."""
    return value(page, "vllm:num_requests_running") > 0


def worked(page: str) -> bool:
    """It has served requests of more than one token (which only measured ones have), and is idle again."""
    return not busy(page) and value(page, "vllm:generation_tokens_total") > 2


def once_worked(bend: Callable[[str], str]) -> Callable[[str], str]:
    """Bend every page from the first idle one after work on: a closed loop is idle between two requests, too."""
    seen = False

    def page(text: str) -> str:
        nonlocal seen
        seen = seen or worked(text)
        return bend(text) if seen else text

    return page
