"""Live samples of a target that a request names: only inside the allow-list, and only where that was looked at.

A name is resolved once; every address it has must be allowed, and the connection goes to one of these addresses, so
that no second look-up can lead elsewhere. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass

import httpx

from diagnoser.errors import UsageError
from diagnoser.live import Engine, Plan, Sampler
from diagnoser.model import Window
from diagnoser.service.api.problems import Problem
from diagnoser.service.api.settings import Allow
from diagnoser.sources.http import Address, normalise_url

RESOLVE_SECONDS = 5.0
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Checked:
    """A target that may be connected to, and where."""

    address: Address
    host: str
    ip: str


def address_of(target: str) -> Address:
    """The target as an address: host:port or a URL whose path ends in /metrics. Problem 422 for all else."""
    try:
        found = normalise_url(target)
    except UsageError as error:
        raise Problem(422, str(error)) from None
    url = httpx.URL(found.metrics_url)
    if url.userinfo or url.query or not url.path.endswith("/metrics"):
        raise Problem(422, "Give host:port, or a URL that ends in /metrics; no user, password or query.")
    return found


async def check(target: str, allow: Allow) -> Checked:
    """Resolves and checks. Problem 403 if it is not inside the allow-list; 422 if it does not resolve."""
    address = address_of(target)
    url = httpx.URL(address.metrics_url)
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    if port not in allow.ports or not allow.cidrs:
        raise Problem(403, f"Port {port} is not in web.allow.ports.", "target-refused")
    found = await _resolve(url.host, port)
    if not all(any(_plain(one) in network for network in allow.cidrs) for one in found):
        raise Problem(403, f"{url.host} is, or is also, outside web.allow.cidrs.", "target-refused")
    return Checked(address, url.host, str(found[0]))


async def _resolve(host: str, port: int) -> list[IpAddress]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise Problem(422, f"{host} does not resolve to an address.", "target-unknown") from None
    return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


def _plain(address: IpAddress) -> IpAddress:
    """::ffff:10.0.0.1 is 10.0.0.1."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class _Pinned(httpx.AsyncHTTPTransport):
    """Connects to the address that was checked, whatever the name says by now; Host and TLS keep the name."""

    def __init__(self, checked: Checked) -> None:
        super().__init__(trust_env=False)
        self._checked = checked

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request."""
        if request.url.host != self._checked.host:
            raise httpx.ConnectError("only the target that was asked for is connected to")
        request.extensions = {**request.extensions, "sni_hostname": self._checked.host}
        request.url = request.url.copy_with(host=self._checked.ip)
        return await super().handle_async_request(request)


async def sample(checked: Checked, plan: Plan) -> tuple[Window, ...]:
    """The windows of a live target after one window of the plan."""
    async with httpx.AsyncClient(transport=_Pinned(checked), trust_env=False) as client:
        sampler = Sampler([Engine(client, checked.address.metrics_url, plan)], plan)
        await sampler.run()
        return sampler.windows()
