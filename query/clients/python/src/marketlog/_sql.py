from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas
    import polars

FileFormat = Literal["Parquet", "ArrowStream", "CSVWithNames"]


@dataclass(frozen=True)
class Rows:
    """The rows of a statement. Integers of 64 bits are texts, as in JSON; Parquet and Arrow have them as numbers."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def rows_of(body: Mapping[str, Any]) -> Rows:
    return Rows([c["name"] for c in body["meta"]], [c["type"] for c in body["meta"]], body["data"])


def statement(query: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"query": query, "parameters": {name: str(value) for name, value in (parameters or {}).items()}}


def to_pandas(parquet: bytes) -> pandas.DataFrame:
    import pandas

    return pandas.read_parquet(io.BytesIO(parquet))


def to_polars(parquet: bytes) -> polars.DataFrame:
    import polars

    return polars.read_parquet(io.BytesIO(parquet))
