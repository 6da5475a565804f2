"""What the section `web:` of the configuration holds."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from diagnoser.service.config_base import Bytes, FilePath, Strict

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_RATE = re.compile(r"([0-9]+)/(s|m|h)")
_PER = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _listen(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or not host:
        raise ValueError(f"{value!r} is no address to listen on: write 127.0.0.1:9180, 0.0.0.0:9180 or [::]:9180")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{value!r}: an IPv6 address stands in brackets: [::1]:9180")
    return value


def _rate(value: str) -> str:
    match = _RATE.fullmatch(value.strip())
    if match is None or not int(match[1]):
        raise ValueError(f"{value!r} is no rate: write 50/s, 600/m or 10000/h")
    return value.strip()


def _origin(value: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.\-]+(:[0-9]+)?|https?://\[[0-9a-fA-F:]+\](:[0-9]+)?", value):
        raise ValueError(f"{value!r} is no origin: write https://grafana.example, without a path; * is not allowed")
    return value.lower()


def _network(value: Any) -> Any:
    try:
        return ipaddress.ip_network(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no network: write 10.0.3.0/24, 10.0.3.7/32 or fd00::/8") from None


Size = Annotated[Bytes, Field(gt=0)]
Rate = Annotated[str, AfterValidator(_rate)]
Origin = Annotated[str, AfterValidator(_origin)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Allow(Strict):
    """Where a request may make the service connect to (`POST /api/v1/diagnose?target=`). Empty: nowhere."""

    cidrs: tuple[Annotated[Network, BeforeValidator(_network)], ...] = ()
    ports: tuple[Port, ...] = ()


class Tls(Strict):
    """Certificate and key in PEM files; with `client_ca` only clients with a certificate of that CA get in."""

    cert: FilePath
    key: FilePath
    key_password_file: FilePath | None = None
    client_ca: FilePath | None = None


class WebSettings(Strict):
    """The HTTP side. Loopback needs no token; any other address needs `tokens_file`, or `insecure` spelled out."""

    listen: Annotated[str, AfterValidator(_listen)] = "127.0.0.1:9180"
    tokens_file: FilePath | None = None
    insecure: bool = False
    tls: Tls | None = None
    hosts: tuple[str, ...] = ()
    """More names that a Host header may hold. On loopback only those of this machine are taken otherwise."""
    cors: tuple[Origin, ...] = ()
    """Origins whose pages may read the API. None by default."""
    trusted_proxies: tuple[Annotated[Network, BeforeValidator(_network)], ...] = ()
    """Whose X-Forwarded-For is believed, for the rate limit and the log."""
    allow: Allow = Allow()
    rate_limit: Rate = "50/s"
    """Requests of one client address; twice as many may come at once."""
    max_body: Size = 2**20
    """Bytes of a request, but for an upload."""
    max_upload: Size = 64 * 2**20
    """Bytes of an uploaded page or recording, as sent."""
    max_events: Annotated[int, Field(ge=0, le=10_000)] = 100
    """Clients of /api/v1/events at once."""

    @property
    def host(self) -> str:
        """The address part of `listen`, without brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port part of `listen`; 0 lets the system choose."""
        return int(self.listen.rpartition(":")[2])

    @property
    def loopback(self) -> bool:
        """Is it reachable from this machine only?"""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def requests_a_second(self) -> float:
        """`rate_limit` as a number."""
        count, per = self.rate_limit.split("/")
        return int(count) / _PER[per]

    @model_validator(mode="after")
    def _not_open(self) -> WebSettings:
        if not self.loopback and self.tokens_file is None and not self.insecure:
            raise ValueError(
                f"{self.listen} can be reached from other machines: give tokens_file (`diagnose token new` makes one), "
                "listen on 127.0.0.1, or say insecure: true if anybody may read and change everything"
            )
        return self
