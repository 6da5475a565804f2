"""Tokens: who may do what. The file keeps SHA-256 of each token, never the token.

A token has 256 random bits, so nothing can be gained by trying, and a slow hash (scrypt) would only let anybody who
sends rubbish spend 50 ms of our CPU each time. Several tokens of one name may be valid at once: that is rotation.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from diagnoser.errors import UsageError

PREFIX = "dgn_"
MAX_FILE_BYTES = 1024 * 1024
Scope = Literal["read", "write", "webhook"]
SCOPES: tuple[Scope, ...] = ("read", "write", "webhook")
log = logging.getLogger("diagnoser.tokens")


def _utc(value: object) -> object:
    """YAML gives a time without a zone: it is meant in UTC."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


class Token(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.@-]+$")]
    hash: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    expires: Annotated[datetime | None, BeforeValidator(_utc)] = None

    def valid(self, now: datetime) -> bool:
        """Not expired."""
        return self.expires is None or now < self.expires


class TokenFile(BaseModel):
    """The whole file: `tokens:` with a list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: tuple[Token, ...]


def new_token() -> str:
    """A token nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What the file keeps of it."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens of a file. UsageError tells what is wrong with it, and never shows a hash."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            raise UsageError(f"{path}: is too large for a file of tokens")
        return TokenFile.model_validate(yaml.safe_load(text)).tokens
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UsageError(f"{path}:{mark.line + 1 if mark else 1}: is no YAML") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(f"{path}: {where}: {first['msg']} (`diagnose token new` shows an entry)") from None


@dataclass(slots=True)
class _Seen:
    stamp: tuple[int, int, int] | None
    tokens: tuple[Token, ...]


class Tokens:
    """The tokens of one file, read again when it changes. A file that turns bad keeps the tokens it had."""

    def __init__(self, path: Path) -> None:
        self.path, self.problem = path, ""
        self._seen = _Seen(self._stamp(), read_tokens(path))

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def current(self) -> Sequence[Token]:
        """The tokens as of now."""
        stamp = self._stamp()
        if stamp != self._seen.stamp:
            self._reread(stamp)
        return self._seen.tokens

    def _reread(self, stamp: tuple[int, int, int] | None) -> None:
        try:
            tokens, self.problem = read_tokens(self.path), ""
            log.info("%s: read again, %d tokens", self.path, len(tokens))
        except UsageError as error:
            tokens, self.problem = self._seen.tokens, str(error)
            log.error("%s; the tokens read before stay valid", error)
        self._seen = _Seen(stamp, tokens)

    def find(self, presented: str) -> Token | None:
        """The valid token that was presented, else None. Takes as long for every token of the file."""
        given, now, found = hash_of(presented).encode(), datetime.now(UTC), None
        for token in self.current():
            if hmac.compare_digest(given, token.hash.encode()) and token.valid(now):
                found = token
        return found
