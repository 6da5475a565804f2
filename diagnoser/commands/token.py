"""`diagnose token new`: a token for the service's API, and the entry of the tokens file that makes it valid."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, duration, say
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.service.api.tokens import Token

SCOPES = ("read", "write", "webhook")


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("action", choices=("new",), help="make a token")
    parser.add_argument("--name", required=True, help="who has it: grafana, alertmanager, anna@laptop")
    parser.add_argument("--scope", action="append", choices=SCOPES, help="what it is good for; may be repeated")
    parser.add_argument("--expires", type=duration, metavar="90d", help="how long it is valid (default: for ever)")
    parser.add_argument("--file", type=Path, metavar="FILE", help="add the entry to this tokens file, made if missing")


def run(args: argparse.Namespace) -> int:
    """The token goes to stdout, all else to stderr."""
    from pydantic import ValidationError

    from diagnoser.commands import setup
    from diagnoser.service.api.tokens import Token, hash_of, new_token

    token = new_token()
    scopes = tuple(dict.fromkeys(args.scope or ("read",)))
    try:
        entry = Token(name=args.name, hash=hash_of(token), scopes=scopes, expires=_expires(args.expires))
    except ValidationError:
        raise UsageError(f"--name {args.name!r}: use letters, digits and _ . @ -, at most 100.") from None
    if args.file is None:
        say("the token is shown only now; put this into web.tokens_file:")
        say("tokens:")
        for line in _lines(entry):
            say(f"  {line}")
    else:
        _add(args.file, entry)
        say(f"{args.file}: added {entry.name}, good for {', '.join(scopes)}. The token is shown only now:")
    setup.write(f"{token}\n")
    return 0


def _expires(seconds: float | None) -> datetime | None:
    return None if seconds is None else (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


def _lines(entry: Token) -> list[str]:
    lines = [f"- name: {entry.name}", f"  hash: {entry.hash}", f"  scopes: [{', '.join(entry.scopes)}]"]
    return lines if entry.expires is None else [*lines, f"  expires: {entry.expires:%Y-%m-%dT%H:%M:%SZ}"]


def _hashes(path: Path) -> list[str]:
    from diagnoser.service.api.tokens import read_tokens

    try:
        return [one.hash for one in read_tokens(path)]
    except UsageError:
        return []


def _add(path: Path, entry: Token) -> None:
    """Appends, so that comments stay; the file is readable by its owner only, and changes at once or not at all."""
    import os
    import tempfile

    from diagnoser.service.api.tokens import read_tokens

    old, text = (read_tokens(path), path.read_text("utf-8")) if path.exists() else ((), "tokens:\n")
    found = re.search(r"^( *)- ", text, re.MULTILINE)
    indent = found[1] if found else "  "
    added = "".join(f"{indent}{line}\n" for line in _lines(entry))
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}).") from None
    made = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
            file.write(added)
        if _hashes(made) != [*(one.hash for one in old), entry.hash]:
            raise UsageError(f"{path}: is not written as a list, a line an entry; add the entry by hand.")
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


COMMAND = Command(
    name="token",
    summary="Makes a token for the API of `diagnose serve`.",
    usage="new --name NAME",
    examples=(
        ("diagnose token new --name grafana --file tokens.yaml", "may read"),
        ("diagnose token new --name am --scope webhook --file tokens.yaml", "for Alertmanager's webhook_config"),
        ("diagnose token new --name anna --scope read --scope write --expires 30d", "shown, to be added by hand"),
    ),
    options=options,
    run=run,
    details=(
        "The file keeps a hash of the token. It is read again when it changes, so that a token is replaced without "
        "a gap: add the new one, hand it out, then remove the old one."
    ),
)
