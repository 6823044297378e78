"""Retries of requests that are safe to repeat, with a budget, Retry-After and the circuit breaker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

from aioflow.config.masking import masked_logger
from aioflow.web.errors import ConnectionFailedError, RequestRefusedError, ResponseTimeoutError, WebError
from aioflow.web.hosts import Host, Hosts
from aioflow.web.http import Fetcher, Request, Response
from aioflow.web.retry_after import retry_after_seconds
from aioflow.web.traffic import ShownUrl

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_LOG = masked_logger("aioflow.web")
_TROUBLE = (ConnectionFailedError, ResponseTimeoutError)
# Server errors that concern the request, and do not mean that the host is in trouble.
_NO_TROUBLE = frozenset({501, 505})


class RetryFetcher:
    """Repeats requests that failed for a reason that may pass.

    The last response is returned whatever its status is; `attempts` of the response or the error is the
    number of times that the request was sent. During a wait nothing is held. `beneath` another RetryFetcher,
    it leaves to that one the circuit breaker, and requests that could not be sent at all.
    """

    def __init__(
        self, inner: Fetcher, hosts: Hosts, random: Random | None = None, *, beneath: bool = False
    ) -> None:
        self._inner = inner
        self._hosts = hosts
        self._random = random or Random()
        self._beneath = beneath

    async def fetch(self, request: Request) -> Response:
        host = self._hosts.at(request.url)
        host.save_retry()
        time = asyncio.get_running_loop().time
        started = last = time()
        waited = 0.0
        attempt = 1
        answered: int | None = None  # the number of answered requests when this one first failed
        host.users += 1
        try:
            while True:
                try:
                    response = await self._attempt(host, request)
                except WebError as error:
                    why: object = error
                    error.attempts = attempt - isinstance(error, RequestRefusedError)
                    seconds = self._seconds_after_error(host, request, error, answered)
                    if seconds is None:
                        raise
                else:
                    why = f"status {response.status}"
                    response.attempts = attempt
                    seconds = self._seconds_after_answer(host, request, response, answered)
                    if seconds is None:
                        if attempt > 1:
                            _count_from(started, last, waited, response)
                        return response
                    await response.close()
                if answered is None:
                    answered = host.breaker.answered
                _LOG.debug("%s is asked for again in %.2f s: %s", ShownUrl(request.url), seconds, why)
                await self._wait(host, seconds)
                waited += seconds
                last = time()
                attempt += 1
                request = replace(request, attempt=request.attempt + 1)
        finally:
            host.users -= 1

    async def close(self) -> None:
        await self._inner.close()

    async def _attempt(self, host: Host, request: Request) -> Response:
        """Make one attempt; report it to the circuit breaker if it is answered or a probe."""
        if self._beneath:
            return await self._inner.fetch(request)
        breaker = host.breaker
        probe = await self._enter(host, request) if breaker.is_open else False
        try:
            response = await self._inner.fetch(request)
        except _TROUBLE as error:
            if probe:
                breaker.probe_failed(str(error))
            raise
        except WebError as error:
            if isinstance(error, RequestRefusedError):
                breaker.leave(probe)
            else:
                breaker.succeeded(probe)
            raise
        except BaseException:
            breaker.leave(probe)
            raise
        if not _shows_trouble(response):
            breaker.succeeded(probe)
        elif probe:
            breaker.probe_failed(f"status {response.status}")
        return response

    async def _enter(self, host: Host, request: Request) -> bool:
        """Wait for the circuit breaker, holding nothing; return whether this is its probe."""
        host.aside += 1
        try:
            return await host.breaker.enter(host.name, request.url)
        except RequestRefusedError as error:
            host.counters.failed(error)
            raise
        finally:
            host.aside -= 1

    def _count_failure(self, host: Host, why: str, answered: int | None) -> None:
        """Have the circuit breaker count a request that failed for good.

        If the host has answered others since the request first failed, the fault is with the page.
        """
        if self._beneath or (answered is not None and answered != host.breaker.answered):
            return
        if host.breaker.failed(why):
            http = self._hosts.http
            _LOG.warning(
                "%s is left alone after %d failures in a row, the last: %s; one request tries it in %g s",
                *(host.name, http.breaker_failures, why, http.breaker_seconds),
            )

    def _seconds_after_error(
        self, host: Host, request: Request, error: WebError, answered: int | None
    ) -> float | None:
        """Return the wait before the next attempt; None if there is to be none."""
        if not isinstance(error, _TROUBLE):
            return None
        seconds = None
        if (request.is_safe or not error.sent) and (error.sent or not self._beneath):
            seconds = self._backoff(host, error.attempts)
        if seconds is None:
            self._count_failure(host, str(error), answered)
        return seconds

    def _seconds_after_answer(
        self, host: Host, request: Request, response: Response, answered: int | None
    ) -> float | None:
        seconds = self._seconds_asked_for(host, request, response) if response.status in RETRIED else None
        if seconds is None and _shows_trouble(response):
            self._count_failure(host, f"status {response.status}", answered)
        return seconds

    def _seconds_asked_for(self, host: Host, request: Request, response: Response) -> float | None:
        if not request.is_safe:
            return None
        # The wait itself is the host's pause, which all requests to it share.
        if (retry_after_seconds(response.headers) or 0.0) > self._hosts.http.retry_after_seconds:
            return None
        seconds = self._backoff(host, response.attempts)
        return seconds if seconds is None or response.stored is None else 0.0

    def _backoff(self, host: Host, attempts: int) -> float | None:
        """Return a random part of a time that doubles with each attempt, to spread requests that failed
        together.
        """
        http = self._hosts.http
        if attempts > http.retries or (host.breaker.refuses() and not self._beneath):
            return None
        if not host.spend_retry():
            return None
        longest = http.retry_base_seconds * 2.0 ** min(attempts - 1, 64)
        return self._random.uniform(0.0, min(longest, http.retry_most_seconds))

    async def _wait(self, host: Host, seconds: float) -> None:
        host.aside += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            host.aside -= 1


def _shows_trouble(response: Response) -> bool:
    return response.status >= 500 and response.status not in _NO_TROUBLE


def _count_from(started: float, last: float, waited: float, response: Response) -> None:
    """Have the times of the last attempt count from the first."""
    timing = response.timing
    timing.waited_seconds += waited
    timing.first_byte_seconds += last - started
    timing.total_seconds += last - started
