"""The three-valued logic of conditions, checked against its truth tables, and unknown is never no."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, Join, Not, holds, leaves, mask
from diagnoser.signals.table import Table, answers

VALUES = {True: 2.0, False: 0.0, None: None}
A, B = Compare("a", ">", 1.0), Compare("b", ">", 1.0)


def table(**columns: bool | None) -> Table:
    return Table({name: [VALUES[value]] for name, value in columns.items()}, 1)


def kleene_and(a: bool | None, b: bool | None) -> bool | None:
    return False if False in (a, b) else None if None in (a, b) else True


@pytest.mark.parametrize(("a", "b"), list(product((True, False, None), repeat=2)))
def test_all_any_not_follow_kleene(a: bool | None, b: bool | None) -> None:
    columns = table(a=a, b=b)
    negated = {True: False, False: True, None: None}
    assert answers(mask(Join("all", (A, B)), columns)) == [kleene_and(a, b)]
    both_false = kleene_and(negated[a], negated[b])
    assert answers(mask(Join("any", (A, B)), columns)) == [negated[both_false]]
    assert answers(mask(Not(A), columns)) == [negated[a]]


def test_a_column_nobody_computed_is_unknown() -> None:
    assert answers(mask(Compare("nobody", "<", 5.0), table(a=True))) == [None]


@pytest.mark.parametrize(
    ("op", "want"), [("==", False), ("!=", True), (">", True), (">=", True), ("<", False), ("<=", False)]
)
def test_operators(op: str, want: bool) -> None:
    assert answers(mask(Compare("a", op, 1.0), table(a=True))) == [want]


conditions: st.SearchStrategy[Condition] = st.recursive(
    st.sampled_from([A, B]),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(
            lambda how, items: Join(how, tuple(items)), st.sampled_from(["all", "any"]), st.lists(inner, max_size=3)
        ),
    ),
    max_leaves=8,
)


@given(conditions, st.sampled_from([True, False]), st.sampled_from([True, False]))
def test_learning_a_value_never_turns_an_answer_round(condition: Condition, a: bool, b: bool) -> None:
    """What was yes or no with a value missing stays so whatever the value turns out to be."""
    whole = answers(mask(condition, table(a=a, b=b)))[0]
    for partial in (table(a=None, b=b), table(a=a, b=None), table(a=None, b=None)):
        known = answers(mask(condition, partial))[0]
        assert known is None or known == whole


@given(conditions, st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=5))
def test_a_column_gives_what_each_row_gives_alone(condition: Condition, rows: list[bool | None]) -> None:
    together = Table({"a": [VALUES[r] for r in rows], "b": [VALUES[r] for r in reversed(rows)]}, len(rows))
    alone = [answers(mask(condition, table(a=a, b=b)))[0] for a, b in zip(rows, reversed(rows), strict=True)]
    assert answers(mask(condition, together)) == alone


def test_over_checks_an_absent_answer_is_unknown_not_no() -> None:
    assert holds(CheckIs("x", "unknown"), {})
    assert not holds(CheckIs("x", "no"), {})
    assert holds(Not(CheckIs("x", "no")), {})
    assert holds(Join("all", ()), {})
    assert not holds(Join("any", ()), {})


def test_conditions_ask_one_kind_of_thing() -> None:
    with pytest.raises(TypeError):
        holds(A, {})
    with pytest.raises(TypeError):
        mask(CheckIs("x", "yes"), table(a=True))
    assert list(leaves(Join("all", (A, Not(B))))) == [A, B]
