"""Addresses that stand in the configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence

from diagnoser.service.discovery.base import Found


class Static:
    """Never changes."""

    name = "static"
    every = math.inf

    def __init__(self, addresses: Sequence[str]) -> None:
        self._found = [Found(address) for address in addresses]

    async def refresh(self) -> Sequence[Found]:
        """The list."""
        return self._found
