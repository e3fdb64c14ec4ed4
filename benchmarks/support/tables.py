"""Tables of benchmarks, printed row by row while they are measured."""

from __future__ import annotations

from collections.abc import Iterable


class Table:
    """Columns of fixed width; the first is to the left, all others to the right.

    Args:
        head: of the columns.
        first: width of the first column.
    """

    def __init__(self, *head: str, first: int = 28) -> None:
        self._first = first
        self._widths = [max(len(each), 7) for each in head[1:]]
        self.row(*head)

    def row(self, name: str, *cells: str) -> None:
        """Prints a row."""
        right = map(str.rjust, cells, self._widths)
        print("  ".join([name.ljust(self._first), *right]), flush=True)


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]], rule: str = "---") -> None:
    """Prints a table in Markdown, each row as soon as it is there.

    Args:
        head: of the columns.
        rows: of as many cells.
        rule: below all names but the first; `---:` puts numbers to the right.
    """
    first, *others = head
    for row in ([first, *others], ["---", *(rule for _ in others)]):
        print(f"| {' | '.join(row)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
