"""What a metrics server says instead of an answer, as a sentence with what to do."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from diagnoser.errors import ServerError, TooMuchError
from diagnoser.sources.http import brief, causes, public_url

_LIMITS = re.compile(r"too many|too large|exceed|more than|limit", re.IGNORECASE)
"""In the words of Prometheus, Thanos, Mimir and VictoriaMetrics: a limit that asking for less stays below."""

_ADVICE: Mapping[int, str] = {
    400: "it cannot read the query; check --match ('job=\"vllm\"').",
    401: "it wants to know who asks; pass --bearer-file FILE, --tenant NAME, or a URL with user:password@.",
    403: "access is not allowed; check the token and the tenant.",
    404: "there is no query API at this path; servers behind a prefix need it (Mimir /prometheus, "
    "VictoriaMetrics cluster /select/0/prometheus, a gateway its own).",
    405: "queries may not be posted there; check the address and the proxy in front.",
    413: "the query is too long for the proxy in front; narrow it down with --match.",
    422: "it could not run the query; shorten --window or narrow it down with --match.",
    429: "it limits the rate of queries; try again, or narrow it down with --match.",
    500: "it failed inside; look into its log.",
    502: "a proxy in front of it cannot reach it; is it running?",
    503: "it is overloaded, starting or gave the query up; try again, shorten --window or use --match.",
    504: "a proxy in front of it got no answer in time; shorten --window or use --match.",
}
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "has a certificate that cannot be verified ({error}); pass its CA with --ca."),
    (ssl.SSLError, "fails at TLS ({error}); is it http rather than https, or does it want --cert and --key?"),
    (socket.gaierror, "cannot be found: its host name does not resolve; check the spelling and DNS."),
    (ConnectionRefusedError, "refuses the connection: nothing listens there; is it up, and is the port right?"),
    (httpx.ConnectTimeout, "cannot be connected to in time: host down, wrong address or a firewall."),
    (httpx.TimeoutException, "gave no complete answer in time; raise --timeout or shorten --window."),
    (httpx.LocalProtocolError, "cannot be asked with these headers ({error}); check --header."),
    (httpx.RemoteProtocolError, "breaks off or does not speak HTTP ({error}); is it https, or another port?"),
    (httpx.DecodingError, "answers with damaged gzip data ({error}); check the proxy in between."),
    (httpx.ConnectError, "cannot be connected to ({error}); check address and port."),
    (httpx.NetworkError, "closed the connection while answering ({error}); it may have been restarted."),
    (Exception, "cannot be read ({error})."),
)


def broken(error: BaseException) -> str:
    """A failed request as a predicate to the server's name. What lies beneath a connection error says most."""
    chain = list(causes(error)) if isinstance(error, httpx.ConnectError | httpx.ReadError | OSError) else [error]
    for kind, reason in _REASONS:
        for cause in chain:
            if isinstance(cause, kind):
                return reason.format(error=brief(cause))
    return f"cannot be read ({brief(error)})."


def refusal(name: str, response: httpx.Response, data: Any, body: bytes) -> ServerError:
    """The error for an answer that is none."""
    code = response.status_code
    if response.has_redirect_location:
        to = public_url(str(response.request.url.join(response.headers["Location"])))
        return ServerError(f"{name} redirects to {to}: redirects are not followed, give the final address.")
    said = _said(data, body)
    if code == 200 and not isinstance(data, dict):
        kind = "an HTML page" if body.lstrip().startswith(b"<") else "JSON that is cut off" if body else "nothing"
        what = "is this the address of a Prometheus-compatible server, and does a proxy cut answers?"
        return ServerError(f"{name} answers with {kind} instead of a result: {what}")
    kind = f" ({data['errorType']})" if isinstance(data, dict) and data.get("errorType") else ""
    status = f"{code} {response.reason_phrase}".strip()
    message = f"{name} answers {status}{kind}{f': {said}' if said else ''}. {_advice(code, said)}"
    too_much = code in (413, 414) or (code in (400, 422, 500) and _LIMITS.search(said) is not None)
    return TooMuchError(message) if too_much else ServerError(message)


def _said(data: Any, body: bytes) -> str:
    """The server's own words, one line of them."""
    if isinstance(data, dict):
        text = str(data.get("error") or data.get("message") or "")
    else:
        text = "" if body.lstrip().startswith(b"<") else body[:400].decode("utf-8", "replace")
    return " ".join(text.split())[:300].rstrip(".")


def _advice(code: int, said: str) -> str:
    if "org id" in said.lower() or "tenant" in said.lower():
        advice = "it keeps several tenants; pass --tenant NAME."
    else:
        advice = _ADVICE.get(code) or _ADVICE.get(code // 100 * 100) or "check what answers at this address."
    return advice[0].upper() + advice[1:]
