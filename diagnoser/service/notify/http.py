"""One POST to a receiver, and what its answer means: accepted, come back later, or never."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from diagnoser.errors import UsageError
from diagnoser.service.notify.base import ACCEPTED, Outcome

LATER = frozenset({408, 425, 429})
"""Refusals that a later attempt may not meet; every other 4xx is final."""
_READ_BYTES = 4096
_SHOWN = 200
_LONGEST_WAIT = 86400.0


def open_client(ca_file: Path | None) -> httpx.AsyncClient:
    """A client that follows no redirect. The URL may be a secret, so httpx' log of every request is turned off.

    UsageError if the certificates in `ca_file` cannot be read.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)
    trusted = httpx.create_ssl_context()
    if ca_file is not None:
        try:
            trusted.load_verify_locations(ca_file)
        except OSError as error:
            raise UsageError(f"ca_file {ca_file} cannot be read ({error.strerror or type(error).__name__}).") from None
    return httpx.AsyncClient(follow_redirects=False, headers={"User-Agent": "diagnoser"}, verify=trusted)


async def post(
    client: httpx.AsyncClient, url: str, content: bytes, headers: Mapping[str, str], timeout: float
) -> Outcome:
    """`timeout` is for all of it, in seconds, so that a receiver that trickles cannot hold us."""
    try:
        async with asyncio.timeout(timeout):
            request = client.build_request("POST", url, content=content, headers=headers, timeout=timeout)
            answer = await client.send(request, stream=True)
            try:
                return _meaning(answer, await _some(answer))
            finally:
                await answer.aclose()
    except (TimeoutError, httpx.TimeoutException):
        return Outcome(False, True, f"no answer within {timeout:g} s")
    except httpx.InvalidURL:
        return Outcome(False, False, "the URL is not valid")
    except (httpx.HTTPError, OSError) as error:
        return Outcome(False, True, f"the connection failed ({type(error).__name__})")


async def _some(answer: httpx.Response) -> str:
    if answer.is_success:
        return ""
    body = b""
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) >= _READ_BYTES:
            break
    return " ".join(body.decode("utf-8", "replace").split())[:_SHOWN]


def _meaning(answer: httpx.Response, text: str) -> Outcome:
    status = answer.status_code
    if answer.is_success:
        return ACCEPTED
    said = f"it answered {status}" + (f": {text}" if text else "")
    if status >= 500 or status in LATER:
        return Outcome(False, True, said, retry_after(answer.headers.get("Retry-After", ""), time.time()))
    return Outcome(False, False, said)


def retry_after(text: str, now: float) -> float | None:
    """Seconds in a Retry-After header: a number, or a date. None for what is neither, at most a day."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_WAIT)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - now), _LONGEST_WAIT)
    except ValueError:
        return None
