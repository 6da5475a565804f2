"""A URL that answers with a list of targets, in Prometheus' HTTP SD format."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from diagnoser.errors import TargetError, UsageError
from diagnoser.service.config_base import secret_of
from diagnoser.service.config_models import HttpSd
from diagnoser.service.discovery.base import DiscoveryError, Found, target_groups
from diagnoser.sources.base import decode_page
from diagnoser.sources.http import fetch_page, public_url

TIMEOUT_SECONDS = 10.0
MAX_BYTES = 16 * 2**20


class HttpList:
    """Asks again every `refresh`. An answer that is no list changes nothing."""

    def __init__(self, settings: HttpSd, client: httpx.AsyncClient) -> None:
        self.name = f"http_sd {public_url(settings.url)}"
        self.every = settings.refresh
        self._settings, self._client = settings, client
        self._last: bytes | None = None

    async def refresh(self) -> Sequence[Found] | None:
        """The list as answered now."""
        try:
            headers = {"Accept": "application/json", **self._headers()}
            body = await fetch_page(
                self._client, self._settings.url, timeout=TIMEOUT_SECONDS, max_bytes=MAX_BYTES, headers=headers
            )
        except (TargetError, UsageError) as error:
            raise DiscoveryError(str(error)) from None
        if body == self._last:
            return None
        found = target_groups(decode_page(body), self.name)
        self._last = body
        return found

    def _headers(self) -> dict[str, str]:
        """The file of the token is read every time: a rotated token works at once."""
        found = {name: value.get_secret_value() for name, value in self._settings.headers.items()}
        if self._settings.bearer_file is not None:
            found["Authorization"] = f"Bearer {secret_of(self._settings.bearer_file)}"
        return found
