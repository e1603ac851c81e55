"""Ready-made conditions on a table, for `Table.wait_until()`. The node's thread evaluates them.

    from dunlin import conditions as c

    loads.wait_until(c.all("step") >= 1)                     # every row's entry
    loads.wait_until(c.any("failed") == True)                # some row's
    loads.wait_until(c.all("count") >= c.mine("count"))      # against the own row's entry
    loads.wait_until(c.row(3, "load") < 0.5)                 # one row's entry
    loads.wait_until(c.min("seq") > 7)                       # a reduction: min, max, sum
    loads.wait_until(c.count(c.where("step") >= 2) >= 3)     # how many rows satisfy a condition
    loads.wait_until((c.all("a") == 1) & ~(c.any("b") > 7))  # combined: &, |, ~

Columns of several entries count entry by entry. `.over([1, 2])`, `.others()` and `.alive()` narrow a
column to some rows, to all but the own, or to those whose members have not failed. Over no rows, `all`
is true, `any` is false, `min` and `max` are infinite. Comparisons of integers are exact.
"""

from __future__ import annotations

from typing import Any, Iterable

__all__ = ["Condition", "Value", "all", "any", "count", "max", "min", "mine", "row", "sum", "where"]


class Condition:
    """Something that is true or false of a table. Combine it by `&`, `|` and `~`."""

    def __init__(self, spec: tuple[Any, ...], text: str):
        self._spec = spec
        self._text = text

    def __and__(self, other: Condition) -> Condition:
        return Condition(("and", self._spec, other._spec), f"({self._text}) & ({other._text})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(("or", self._spec, other._spec), f"({self._text}) | ({other._text})")

    def __invert__(self) -> Condition:
        return Condition(("not", self._spec), f"~({self._text})")

    def __bool__(self) -> bool:
        raise TypeError(f"{self._text} is true or false of a table: give it to Table.wait_until(), and combine "
                        "conditions by &, | and ~")

    def __repr__(self) -> str:
        return f"<dunlin condition: {self._text}>"


def _operand(other: Any) -> tuple[Any, str]:
    return (other._spec, other._text) if isinstance(other, Value) else (other, repr(other))


class _Comparable:
    """What the six comparisons make a condition of."""

    __hash__ = None  # type: ignore[assignment]

    def _compare(self, sign: str, other: Any) -> Any:
        raise NotImplementedError

    def __eq__(self, other: Any) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)


class Value(_Comparable):
    """A number that a table has: an entry, a reduction or a count."""

    def __init__(self, spec: tuple[Any, ...], text: str):
        self._spec = spec
        self._text = text

    def _compare(self, sign: str, other: Any) -> Condition:
        spec, text = _operand(other)
        return Condition(("compare", sign, self._spec, spec), f"{self._text} {sign} {text}")

    def __repr__(self) -> str:
        return f"<dunlin value: {self._text}>"


class _Narrowed:
    """A column over all rows, until it is narrowed to some."""

    def __init__(self, kind: str, column: str, rows: tuple[Any, bool, bool] = (None, False, False)):
        self._kind = kind
        self._column = column
        self._rows = rows

    def over(self, rows: Iterable[int]) -> Any:
        """Only these rows."""
        return type(self)(self._kind, self._column, (list(rows), *self._rows[1:]))

    def others(self) -> Any:
        """All rows but the own."""
        return type(self)(self._kind, self._column, (self._rows[0], True, self._rows[2]))

    def alive(self) -> Any:
        """Only the rows of members that have not failed."""
        return type(self)(self._kind, self._column, (*self._rows[:2], True))

    @property
    def _text(self) -> str:
        listed, others, alive = self._rows
        some = "" if listed is None else f" of rows {listed}"
        return f"{self._kind}({self._column!r}{some}{' of others' if others else ''}{' of alive' if alive else ''})"


class _Quantified(_Narrowed, _Comparable):
    def _compare(self, sign: str, other: Any) -> Any:
        spec, text = _operand(other)
        its = (self._kind, self._column, self._rows, sign, spec)
        text = f"{self._text} {sign} {text}"
        return _Where(its, text) if self._kind == "where" else Condition(its, text)


class _Where:
    """A condition on one row, for count()."""

    def __init__(self, spec: tuple[Any, ...], text: str):
        self._spec = spec
        self._text = text


class _Reduction(_Narrowed, Value):
    @property
    def _spec(self) -> tuple[Any, ...]:  # type: ignore[override]
        return (self._kind, self._column, self._rows)


def all(column: str) -> Any:
    """Every row's entries of the column; compare it."""
    return _Quantified("all", column)


def any(column: str) -> Any:
    """Some row's entry of the column; compare it."""
    return _Quantified("any", column)


def where(column: str) -> Any:
    """A row's entries of the column; compare it, for count()."""
    return _Quantified("where", column)


def count(condition: Any) -> Value:
    """How many rows satisfy a condition that begins with where()."""
    if not isinstance(condition, _Where):
        raise TypeError('count() takes a condition on rows: count(where("column") >= 2)')
    return Value(("count", *condition._spec[1:]), f"count({condition._text})")


def min(column: str) -> Any:
    """The least entry of the column."""
    return _Reduction("min", column)


def max(column: str) -> Any:
    """The greatest entry of the column."""
    return _Reduction("max", column)


def sum(column: str) -> Any:
    """The sum of the column's entries."""
    return _Reduction("sum", column)


def mine(column: str) -> Value:
    """The own row's entry of the column."""
    return Value(("row", None, column), f"mine.{column}")


def row(index: int, column: str) -> Value:
    """That row's entry of the column."""
    return Value(("row", index, column), f"row {index}.{column}")
