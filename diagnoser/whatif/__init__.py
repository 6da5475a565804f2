"""What each change would do to admission: fp8 KV, more memory, a replica, ..., and why twice the L2 does nothing.

Built on the signals of the forecast and on the verdict: a change of what does not bind changes nothing.
"""

from __future__ import annotations

from diagnoser.whatif.changes import what_if
from diagnoser.whatif.load import Limits

__all__ = ["Limits", "what_if"]
