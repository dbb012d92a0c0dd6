"""Reads a file in one of ClickHouse's formats with a library of others and says how many rows it has, what the column number
sums up to, and whether every row's text is its number."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, ipc, orc, parquet
from pyarrow import json as lines


def batches(form, path):
    """Yields tables with the columns number and text."""
    if form == "Parquet":
        yield parquet.read_table(path)
    elif form == "Arrow":
        yield ipc.open_file(pa.memory_map(path)).read_all()
    elif form == "ArrowStream":
        with ipc.open_stream(path) as reader:
            yield reader.read_all()
    elif form == "ORC":
        yield orc.read_table(path)
    elif form == "CSVWithNames":
        yield csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"number": pa.uint64(), "text": pa.string()}))
    elif form == "JSONEachRow":
        if open(path, "rb").read(1):  # no rows are no bytes, which is no JSON to the library
            yield lines.read_json(path)
    elif form == "Avro":
        import fastavro

        rows, size = {"number": [], "text": []}, 100_000
        with open(path, "rb") as file:
            for row in fastavro.reader(file):
                rows["number"].append(row["number"])
                rows["text"].append(row["text"])
                if len(rows["number"]) == size:
                    yield pa.table(rows)
                    rows = {"number": [], "text": []}
        if rows["number"]:
            yield pa.table(rows)
    else:
        sys.exit(f"{form}: no reader")


count, total, agree = 0, 0, True
for table in batches(*sys.argv[1:]):
    if table.num_rows == 0:
        continue
    number, text = table["number"], table["text"]
    if pa.types.is_binary(text.type):
        text = text.cast(pa.string())
    count += table.num_rows
    total += pc.sum(number).as_py()
    agree = agree and pc.all(pc.equal(number.cast(pa.string()), text)).as_py()
print("rows", count, "sum", total, "agree", agree)
