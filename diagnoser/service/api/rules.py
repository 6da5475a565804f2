"""Rules and their words: what a check asks, what a verdict means, why a threshold has its number."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request

from diagnoser.explain import Entries, entries
from diagnoser.language import Language
from diagnoser.service.api import models, views
from diagnoser.service.api.languages import Spoken
from diagnoser.service.api.problems import Problem

router = APIRouter(prefix="/api/v1/rules", tags=["rules"])
Kind = Literal["checks", "verdicts", "remedies", "thresholds", "gates", "signals", "facts"]
RuleId = Annotated[str, Path(max_length=100, examples=["head_does_not_fit"])]


def _entries(request: Request, language: Language) -> Entries:
    return entries(views.service_of(request).book, language)


def _lines(found: Entries, kind: str) -> list[models.RuleLine]:
    return [models.RuleLine(id=name, title=entry.title) for name, entry in found[kind].items()]


@router.get("", summary="All rules by kind")
async def rules(request: Request, language: Spoken) -> models.Rules:
    """Checks in the order of the checklist, verdicts in the order of the decision, and all they are made of."""
    found = _entries(request, language)
    errors = [str(error) for error in views.service_of(request).book.errors]
    return models.Rules(rules={kind: _lines(found, kind) for kind in found}, errors=errors)


@router.get("/{kind}", summary="Rules of one kind")
async def kind_of(request: Request, kind: Kind, language: Spoken) -> list[models.RuleLine]:
    """Id and title."""
    return _lines(_entries(request, language), kind)


@router.get("/{kind}/{rule}", summary="One rule with its explanation")
async def rule(request: Request, kind: Kind, rule: RuleId, language: Spoken) -> models.Rule:
    """What `diagnose explain` prints, in lines and in parts; what only the engines' sources explain stays English."""
    found = _entries(request, language)[kind].get(rule)
    if found is None:
        raise Problem(404, f"There is no {rule!r} among the {kind}; /api/v1/rules/{kind} lists them.", "no-such-rule")
    parts = [models.RulePart(name=part.name, text=part.text, language=part.language) for part in found.parts]
    return models.Rule(kind=kind, id=rule, title=found.title, text=found.text, parts=parts)
