"""Engines behind a name: every A or AAAA record with a port, or every SRV record.

dnspython asks the servers itself and so sees all records, SRV, search domains and negative answers alike; the
system's getaddrinfo knows neither SRV nor tells "no such name" from "no answer".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.resolver

from diagnoser.service.config_models import DnsSd
from diagnoser.service.discovery.base import DiscoveryError, Found

TIMEOUT_SECONDS = 5.0


class Records:
    """Asks again every `refresh`. A name that does not exist any more is an empty list; no answer changes nothing."""

    def __init__(self, settings: DnsSd) -> None:
        self.name = f"dns {settings.type} {settings.name}"
        self.every = settings.refresh
        self._settings = settings

    async def refresh(self) -> Sequence[Found]:
        """The addresses of the records, in order."""
        settings = self._settings
        try:
            answer = await _resolver(settings).resolve(
                settings.name, settings.type, search=True, lifetime=TIMEOUT_SECONDS
            )
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return []
        except (dns.exception.DNSException, OSError, UnicodeError) as error:
            raise DiscoveryError(f"{self.name}: {error or type(error).__name__}") from None
        labels = {"__meta_dns_name": settings.name}
        return [Found(address, labels) for address in sorted(_address(record, settings) for record in answer)]


def _address(record: Any, settings: DnsSd) -> str:
    """`record` is of the type asked for: with target and port, or with an address."""
    if settings.type == "SRV":
        return f"{str(record.target).rstrip('.')}:{settings.port or record.port}"
    address = str(record.address)
    return f"[{address}]:{settings.port}" if ":" in address else f"{address}:{settings.port}"


def _resolver(settings: DnsSd) -> dns.asyncresolver.Resolver:
    """As /etc/resolv.conf is now, or the servers given ("10.0.0.2", "127.0.0.1@5353")."""
    if not settings.servers:
        try:
            return dns.asyncresolver.Resolver()
        except dns.resolver.NoResolverConfiguration as error:
            raise DiscoveryError(f"dns {settings.name}: {error}") from None
    resolver = dns.asyncresolver.Resolver(configure=False)
    hosts = [server.partition("@")[0] for server in settings.servers]
    resolver.nameservers = list(hosts)
    resolver.nameserver_ports = {
        host: int(server.partition("@")[2] or 53) for host, server in zip(hosts, settings.servers, strict=True)
    }
    return resolver
