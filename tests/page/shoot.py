"""Renews the pictures in docs/images: `python tests/page/shoot.py` from the root of the repository.

A fleet of recorded engines, evaluated as the service does it. The Chinese one needs a font (fonts-wqy-microhei).
Made smaller with `pngquant --ext .png --force 64 docs/images/page-*.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import Browser  # noqa: E402
from service.web_kit import Web  # noqa: E402

from page.kit import ROWS, chromium, now, served  # noqa: E402

IMAGES = ROOT / "docs" / "images"
BOUND_L2 = "llama-8b-3.example:30000"
FLEET = {
    "llama-70b-1.example:8000": ("vllm-0.32.0--c-l1-preempt", 60),
    "llama-70b-2.example:8000": ("vllm-0.32.0--o-busy-not-bound", 60),
    "qwen-7b-1.example:8000": ("vllm-0.32.0--e-max-num-seqs", 60),
    "llama-8b-1.example:30000": ("sglang-0.5.23--b-healthy", 60),
    "llama-8b-2.example:30000": ("sglang-0.5.23--f-prefill-compute", 55),
    BOUND_L2: ("sglang-0.5.23--j1-hicache-l1-bound-l2-idle", 58),
    "mistral-7b-1.example:8000": ("vllm-0.32.0--i-killed", 89),
    "mistral-7b-2.example:8000": ("vllm-0.32.0--w-l1-low-usage", 60),
}
SHOTS: dict[str, dict[str, Any]] = {
    "page-fleet": {"width": 1280, "height": 760, "path": "/"},
    "page-engine": {"width": 1280, "height": 760, "path": BOUND_L2, "full": True},
    "page-engine-dark-zh": {"width": 1280, "height": 820, "path": BOUND_L2, "dark": True, "locale": "zh-CN"},
    "page-phone": {"width": 360, "height": 760, "path": BOUND_L2},
}


def play(web: Web) -> None:
    """The last minute of all of them."""
    for ago in range(50, -1, -5):
        web.evaluated(*[now(name, target, max(20, last - ago), ago=ago) for target, (name, last) in FLEET.items()])


def shoot(browser: Browser, web: Web, name: str, shot: dict[str, Any]) -> None:
    scheme: Any = "dark" if shot.get("dark") else "light"
    size: Any = {"width": shot["width"], "height": shot["height"]}
    context = browser.new_context(viewport=size, color_scheme=scheme, locale=shot.get("locale", "en-US"))
    page = context.new_page()
    path = shot["path"]
    page.goto(web.url + (path if path == "/" else f"/#/engine/{quote(path + '/0', safe='')}"))
    page.wait_for_selector(ROWS if path == "/" else "#engine .plot canvas")
    page.wait_for_timeout(1000)
    page.screenshot(path=IMAGES / f"{name}.png", full_page=shot.get("full", False))
    context.close()


if __name__ == "__main__":
    with served() as web, chromium() as browser:
        play(web)
        for name, shot in SHOTS.items():
            shoot(browser, web, name, shot)
