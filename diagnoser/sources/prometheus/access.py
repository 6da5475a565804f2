"""How a metrics server is reached: address, headers and certificates, as a person gives them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from diagnoser.errors import UsageError
from diagnoser.sources.http import public_url

TENANT_HEADER = "X-Scope-OrgID"
"""What Mimir, Cortex and Loki call it; Thanos' default is THANOS-TENANT and goes through `headers`."""
_ADVICE = "give the address that Grafana uses as its data source, such as http://prometheus:9090"


@dataclass(frozen=True, slots=True)
class Access:
    """`url` is the server's root with any prefix; `ca`, `cert` and `key` are PEM files, "" = not given."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str = ""
    cert: str = ""
    key: str = ""


def api_url(text: str) -> httpx.URL:
    """The URL of the query API: "http://mimir/prometheus" -> ".../prometheus/api/v1/query". UsageError if it is none.

    What a person may have copied behind the root (/graph, /api/v1, /api/v1/query) is taken off.
    """
    text = text.strip()
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}").copy_with(fragment=None, query=None)
    except (httpx.InvalidURL, UnicodeError):
        raise UsageError(f"--prometheus {public_url(text)!r} is no address: {_ADVICE}.") from None
    usable = url.host and not set(url.host) & set("% ") and 0 < (url.port or 80) < 65536
    if url.scheme not in ("http", "https") or not usable:
        raise UsageError(f"--prometheus {public_url(text)!r} has no usable scheme, host or port: {_ADVICE}.")
    path = url.path.rstrip("/")
    for tail in ("/query", "/api/v1", "/graph"):
        path = path.removesuffix(tail)
    return url.copy_with(path=f"{path}/api/v1/query")


def server_name(url: httpx.URL) -> str:
    """The server as every message shows it: without credentials and without the path of the API."""
    return url.netloc.decode("ascii") + url.path.removesuffix("/api/v1/query")


def open_client(access: Access) -> httpx.AsyncClient:
    """A client for this server. It ignores HTTP_PROXY and .netrc. UsageError for a certificate that cannot be used."""
    try:
        httpx.Headers(dict(access.headers))
    except (UnicodeError, TypeError):
        raise UsageError("a header holds characters that HTTP cannot carry: use ASCII only.") from None
    return httpx.AsyncClient(verify=_tls(access), headers=dict(access.headers), trust_env=False)


def _tls(access: Access) -> ssl.SSLContext:
    for flag, path in (("--ca", access.ca), ("--cert", access.cert), ("--key", access.key)):
        if path and not Path(path).is_file():
            raise UsageError(f"{flag} {path}: no such file; give a PEM file.")
    if access.key and not access.cert:
        raise UsageError("--key needs --cert: the certificate that the key belongs to.")
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"--ca {access.ca}: no certificate can be read from it ({error}); give a PEM file.") from None
    if access.cert:
        try:
            # An empty password: a key that wants one is refused instead of asked for at the terminal.
            context.load_cert_chain(access.cert, access.key or None, password="")
        except (ssl.SSLError, OSError) as error:
            where = f"--cert {access.cert}" + (f" --key {access.key}" if access.key else "")
            raise UsageError(f"{where}: cannot be used ({error}); give PEM files without a password.") from None
    return context
