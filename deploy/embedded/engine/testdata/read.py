"""Asks the SQL port for the same rows in many formats, and reads each answer with a parser that has nothing of ClickHouse in it:
pyarrow, fastavro, msgpack, pymongo's bson, Python's own csv, json and expat, and for formats that only ClickHouse has, the few
lines that its documentation of the format asks for.

    read.py ADDRESS ROWS FORMAT…

prints "FORMAT: whole" for each answer that holds every row once, in order, with its values, and nothing else; else what is wrong.
"""

import ast
import csv
import io
import json
import multiprocessing
import re
import struct
import sys
import traceback
import urllib.error
import urllib.parse
import urllib.request
import xml.parsers.expat
from array import array

# Each text holds what one format or another has to escape.
PREFIX = "é\"'<&\\,"
SQL_PREFIX = "'é\"\\'<&\\\\,'"


def rows_of(pairs):
    """Counts pairs of number and text that must be 0, 1, 2, …"""
    n = 0
    for number, text in pairs:
        if int(number) != n or text != PREFIX + str(n):
            raise ValueError(f"row {n} is {number!r}, {text!r}")
        n += 1
    return n


def rows_of_table(table):
    """Does the same to columns of pyarrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.column_names != ["number", "text"]:
        raise ValueError(f"the columns are {table.column_names}")
    if table.num_rows == 0:
        return 0
    number, text = table["number"].cast(pa.uint64()), table["text"].cast(pa.string())
    if not number.combine_chunks().equals(pa.array(range(table.num_rows), pa.uint64())):
        raise ValueError("the numbers differ")
    if not pc.all(pc.equal(pc.binary_join_element_wise(PREFIX, number.cast(pa.string()), ""), text)).as_py():
        raise ValueError("the texts differ")
    return table.num_rows


# Formats of columns, and of files.


def parquet(body):
    from pyarrow import BufferReader
    from pyarrow import parquet as files

    return rows_of_table(files.read_table(BufferReader(body)))


def arrow(body):
    from pyarrow import ipc

    return rows_of_table(ipc.open_file(body).read_all())


def arrow_stream(body):
    from pyarrow import ipc

    with ipc.open_stream(body) as reader:
        return rows_of_table(reader.read_all())


def orc(body):
    from pyarrow import BufferReader
    from pyarrow import orc as files

    return rows_of_table(files.read_table(BufferReader(body)))


def text_of(value):
    return value.decode() if isinstance(value, bytes) else value


def avro(body):
    import fastavro

    return rows_of((r["number"], text_of(r["text"])) for r in fastavro.reader(io.BytesIO(body)))


def msgpack(body):
    import msgpack as packed

    values = iter(packed.Unpacker(io.BytesIO(body), max_buffer_size=0))
    return rows_of((number, text_of(next(values))) for number in values)


def bson(body):
    from bson import decode_file_iter

    return rows_of((r["number"], text_of(r["text"])) for r in decode_file_iter(io.BytesIO(body)))


def npy(body):
    """https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html; of the column number alone."""
    magic, major = body[:6], body[6]
    if magic != b"\x93NUMPY":
        raise ValueError(f"it begins with {magic!r}")
    size, at = (struct.unpack_from("<H", body, 8)[0], 10) if major == 1 else (struct.unpack_from("<I", body, 8)[0], 12)
    header = ast.literal_eval(body[at : at + size].decode())
    if header["descr"] != "<u8" or header["fortran_order"]:
        raise ValueError(f"its header is {header}")
    numbers = array("Q")
    numbers.frombytes(body[at + size :])
    if (len(numbers),) != header["shape"] or numbers != array("Q", range(len(numbers))):
        raise ValueError(f"{len(numbers)} numbers, and the header {header}")
    return len(numbers)


# Binary formats of ClickHouse: https://clickhouse.com/docs/interfaces/formats


def varint(body, at):
    value = shift = 0
    while True:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def string(body, at):
    size, at = varint(body, at)
    if at + size > len(body):
        raise ValueError("it ends within a text")
    return body[at : at + size].decode(), at + size


def strings(body, at, n):
    values = []
    for _ in range(n):
        value, at = string(body, at)
        values.append(value)
    return values, at


def row_binary(headers):
    def read(body):
        at = 0
        if headers:
            n, at = varint(body, at)
            want = [["number", "text"], ["UInt64", "String"]][:headers]
            for expected in want:
                got, at = strings(body, at, n)
                if got != expected:
                    raise ValueError(f"its header says {got}")

        def pairs(at):
            while at < len(body):
                (number,) = struct.unpack_from("<Q", body, at)
                text, at = string(body, at + 8)
                yield number, text

        return rows_of(pairs(at))

    return read


def native(body):
    def pairs():
        at = 0
        while at < len(body):
            columns, at = varint(body, at)
            n, at = varint(body, at)
            values = []
            for name, kind in [("number", "UInt64"), ("text", "String")][:columns]:
                got, at = strings(body, at, 2)
                if got != [name, kind]:
                    raise ValueError(f"a column is {got}")
                if kind == "UInt64":
                    values.append(struct.unpack_from(f"<{n}Q", body, at))
                    at += 8 * n
                else:
                    column, at = strings(body, at, n)
                    values.append(column)
            yield from zip(*values, strict=True)

    return rows_of(pairs())


def buffers(body):
    """Blocks of: columns, rows, and for each column its size in bytes and its values."""

    def pairs():
        at = 0
        while at < len(body):
            columns, n, size = struct.unpack_from("<QQQ", body, at)
            if (columns, size) != (2, 8 * n):
                raise ValueError(f"{columns} columns, the first of {size} bytes for {n} rows")
            at += 24
            numbers = struct.unpack_from(f"<{n}Q", body, at)
            at += size
            (size,) = struct.unpack_from("<Q", body, at)
            texts, end = strings(body, at + 8, n)
            if end != at + 8 + size:
                raise ValueError(f"the texts of {n} rows have {end - at - 8} bytes, not {size}")
            at = end
            yield from zip(numbers, texts, strict=True)

    return rows_of(pairs())


def odbc(body):
    """Rows of texts behind their sizes; the first two are names and types, and their count comes before them."""

    def values(at, n):
        row = []
        for _ in range(n):
            (size,) = struct.unpack_from("<i", body, at)
            row.append(body[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return row, at

    (lines,) = struct.unpack_from("<i", body, 0)
    headers, at = [], 4
    for _ in range(lines):
        (n,) = struct.unpack_from("<i", body, at)
        row, at = values(at + 4, n)
        headers.append(row)
    if headers != [["name", "number", "text"], ["type", "UInt64", "String"]]:
        raise ValueError(f"its header is {headers}")

    def pairs(at):
        while at < len(body):
            row, at = values(at, 2)
            yield row

    return rows_of(pairs(at))


# Texts.


def lines_of(body, headers):
    """The lines of a text behind its lines of names and types."""
    lines = io.TextIOWrapper(io.BytesIO(body), "utf-8", newline="\n")
    for want in [["number", "text"], ["UInt64", "String"]][:headers]:
        yield want, next(lines, None)
    for line in lines:
        if not line.endswith("\n"):
            raise ValueError(f"it ends within the line {line!r}")
        yield None, line[:-1]


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


def unescaped(text):
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text, flags=re.S)


def tabbed(headers, escaped):
    def read(body):
        def pairs():
            for header, line in lines_of(body, headers):
                if header:
                    if line is None or line[:-1].split("\t") != header:
                        raise ValueError(f"instead of {header}: {line!r}")
                    continue
                number, text = line.split("\t")
                yield number, unescaped(text) if escaped else text

        return rows_of(pairs())

    return read


def tskv(body):
    def pairs():
        for _, line in lines_of(body, 0):
            number, text = line.split("\t")
            if not number.startswith("number=") or not text.startswith("text="):
                raise ValueError(f"a line is {line!r}")
            yield number[7:], unescaped(text[5:])

    return rows_of(pairs())


def comma(headers):
    def read(body):
        rows = csv.reader(io.TextIOWrapper(io.BytesIO(body), "utf-8", newline=""), strict=True)
        for want in [["number", "text"], ["UInt64", "String"]][:headers]:
            if (got := next(rows)) != want:
                raise ValueError(f"instead of {want}: {got}")
        return rows_of(rows)

    return read


def markdown(body):
    lines = lines_of(body, 0)
    head = [next(lines)[1], next(lines)[1]]
    if head != ["| number | text |", "|-:|:-|"]:
        raise ValueError(f"it begins with {head}")

    def pairs():
        for _, line in lines:
            if not line.startswith("| ") or not line.endswith(" |"):
                wrong(line)
            number, text = line[2:-2].split(" | ")
            yield number, unescaped(text)

    return rows_of(pairs())


def wrong(line):
    raise ValueError(f"a line is {line!r}")


def vertical(body):
    def pairs():
        lines = (line for _, line in lines_of(body, 0))
        for n, head in enumerate(lines):
            if n:  # a blank line parts the rows
                if head:
                    wrong(head)
                head = next(lines)
            rule, number, text = next(lines), next(lines), next(lines)
            if head != f"Row {n + 1}:" or set(rule) != {"─"} or not number.startswith("number: ") or not text.startswith("text:   "):
                raise ValueError(f"row {n + 1} is {[head, rule, number, text]}")
            yield number[8:].split(" -- ")[0], text[8:]  # large numbers have a note for people: 1000001 -- 1.00 million

    return rows_of(pairs())


CELLS = re.compile(r"^ *(\d+)\. (?:│ )? *(\d+)(?: │)? +(\S+) *(?:│)?$")
FRAME = re.compile(r"^[ \u2500-\u257f]*(?:number[ \u2500-\u257f]+text[ \u2500-\u257f]*)?$")  # borders, and the names above and below


def pretty(body):
    def pairs():
        n = 0
        for _, line in lines_of(re.sub(rb"\x1b\[[0-9;]*m", b"", body), 0):
            if row := CELLS.match(line):
                n += 1
                if int(row[1]) != n:
                    raise ValueError(f"row {n} is numbered {row[1]}")
                yield row[2], row[3]
            elif not FRAME.match(line):
                wrong(line)

    return rows_of(pairs())


TUPLE = re.compile(r"\((\d+), ?'((?:[^'\\]|\\.|'')*)'\)")


def tuples(text, at, end):
    """Tuples with commas between them, and nothing else, in a piece of text."""
    while at < end:
        m = TUPLE.match(text, at, end)
        if not m:
            raise ValueError(f"at {at} is {text[at : at + 60]!r}")
        yield m[1], unescaped(m[2])
        at = m.end()
        if at < end:
            if text[at] != ",":
                raise ValueError(f"behind a tuple is {text[at : at + 60]!r}")
            at += 2 if text.startswith(", ", at) else 1
            if at == end:
                raise ValueError("it ends with a comma")


def values(body):
    text = body.decode()
    return rows_of(tuples(text, 0, len(text)))


def sql_insert(body):
    text, head = body.decode(), "INSERT INTO table (`number`, `text`) VALUES "

    def pairs():
        if text == ";\n":  # of no rows
            return
        at = 0
        while at < len(text):
            end = text.find(";\n", at)
            if not text.startswith(head, at) or end < 0:
                raise ValueError(f"a statement begins with {text[at : at + 60]!r}")
            yield from tuples(text, at + len(head), end)
            at = end + 2

    return rows_of(pairs())


def xml_rows(body):
    found = {"rows": 0, "told": None}
    path, pieces, fields = [], [], {}

    def start(name, _):
        path.append(name)
        pieces.clear()

    def end(name):
        path.pop()
        if path == ["result", "data", "row"]:
            fields[name] = "".join(pieces)
        elif path == ["result", "data"]:
            n = found["rows"]
            if fields != {"number": str(n), "text": PREFIX + str(n)}:
                raise ValueError(f"row {n} is {fields}")
            fields.clear()
            found["rows"] = n + 1
        elif path == ["result"] and name == "rows":
            found["told"] = int("".join(pieces))

    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, pieces.append
    parser.Parse(body, True)
    if found["told"] != found["rows"]:
        raise ValueError(f"it says that it has {found['told']} rows, and has {found['rows']}")
    return found["rows"]


# JSON.


def fields_of(row):
    if isinstance(row, list):
        return row
    if list(row) != ["number", "text"]:
        raise ValueError(f"the fields are {list(row)}")
    return row["number"], row["text"]


def json_whole(body):
    answer = json.loads(body)
    if [m["name"] for m in answer["meta"]] != ["number", "text"]:
        raise ValueError(f"its meta is {answer['meta']}")
    n = rows_of(map(fields_of, answer["data"]))
    if answer["rows"] != n:
        raise ValueError(f"it says that it has {answer['rows']} rows, and has {n}")
    return n


def columns_of(columns):
    if not columns:  # of no rows there may be no columns either
        return 0
    return rows_of(zip(*fields_of(columns), strict=True))


def json_columns(body):
    return columns_of(json.loads(body))


def json_columns_with_metadata(body):
    answer = json.loads(body)
    n = columns_of(answer["data"])
    if answer["rows"] != n:
        raise ValueError(f"it says that it has {answer['rows']} rows, and has {n}")
    return n


def json_lines(headers=0, progress=False):
    def read(body):
        def pairs():
            for header, line in lines_of(body, headers):
                row = json.loads(line)
                if header:
                    if row != header:
                        raise ValueError(f"instead of {header}: {row}")
                    continue
                if progress:
                    if row.keys() & {"meta", "progress"} and len(row) == 1:
                        continue
                    row = row["row"]
                yield fields_of(row)

        return rows_of(pairs())

    return read


def json_objects(body):
    """One object after the other, each over several lines."""

    def pairs():
        text, decoder, at = body.decode(), json.JSONDecoder(), 0
        while at < len(text):
            row, at = decoder.raw_decode(text, at)
            if text[at : at + 1] != "\n":
                raise ValueError(f"behind a row is {text[at : at + 60]!r}")
            at += 1
            yield fields_of(row)

    return rows_of(pairs())


def json_object_of_rows(body):
    n = 0

    def hook(pairs):
        nonlocal n
        if [name for name, _ in pairs] == ["number", "text"]:
            if int(pairs[0][1]) != n or pairs[1][1] != PREFIX + str(n):
                raise ValueError(f"row {n} is {pairs}")
            n += 1
            return n  # small: there are millions
        for at, (name, value) in enumerate(pairs):
            if (name, value) != (f"row_{at + 1}", at + 1):
                raise ValueError(f"the row {at + 1} is {name}, {value}")
        return len(pairs)

    if json.loads(body, object_pairs_hook=hook) != n:
        raise ValueError(f"{n} rows lie deeper")
    return n


READERS = {
    "Arrow": arrow,
    "ArrowStream": arrow_stream,
    "Avro": avro,
    "BSONEachRow": bson,
    "Buffers": buffers,
    "JSONColumns": json_columns,
    "JSONColumnsWithMetadata": json_columns_with_metadata,
    "JSONCompactColumns": json_columns,
    "JSONObjectEachRow": json_object_of_rows,
    "LineAsString": tabbed(0, False),
    "LineAsStringWithNames": tabbed(1, False),
    "LineAsStringWithNamesAndTypes": tabbed(2, False),
    "MD": markdown,
    "Markdown": markdown,
    "MsgPack": msgpack,
    "Native": native,
    "Npy": npy,
    "ODBCDriver2": odbc,
    "ORC": orc,
    "Parquet": parquet,
    "SQLInsert": sql_insert,
    "TSKV": tskv,
    "Values": values,
    "Vertical": vertical,
    "XML": xml_rows,
}
for headers, suffix in enumerate(["", "WithNames", "WithNamesAndTypes"]):
    READERS["CSV" + suffix] = comma(headers)
    READERS["RowBinary" + suffix] = row_binary(headers)
    for name, escaped in {"TabSeparated": 1, "TSV": 1, "CustomSeparated": 1, "TabSeparatedRaw": 0, "TSVRaw": 0, "Raw": 0}.items():
        READERS[name + suffix] = tabbed(headers, escaped)
    for name in "JSONCompactEachRow", "JSONCompactStringsEachRow":
        READERS[name + suffix] = json_lines(headers)
for name in "JSON", "JSONStrings", "JSONCompact", "JSONCompactStrings":
    READERS[name] = json_whole
for name in "JSONEachRow", "JSONL", "JSONLines", "NDJSON", "JSONStringsEachRow":
    READERS[name] = json_lines()
for name in "JSONEachRow", "JSONStringsEachRow", "JSONCompactEachRow", "JSONCompactStringsEachRow":
    READERS[name + "WithProgress"] = json_lines(progress=True)
for name in "PrettyJSONEachRow", "PrettyJSONLines", "PrettyNDJSON":
    READERS[name] = json_objects
for style in "", "Compact", "Space":
    for escapes in "", "NoEscapes":
        for blocks in "", "MonoBlock":
            READERS["Pretty" + style + escapes + blocks] = pretty


def judge(task):
    address, rows, form = task
    if form not in READERS:
        return f"{form}: no reader is known: write one, or have the format rejected"
    what = "number" if form == "Npy" else f"number, concat({SQL_PREFIX}, toString(number)) AS text"
    query = urllib.parse.urlencode({"query": f"SELECT {what} FROM numbers({rows}) FORMAT {form}"})
    try:
        with urllib.request.urlopen(f"{address}/?{query}") as response:
            body = response.read()
        n = READERS[form](body)
        return f"{form}: whole" if n == rows else f"{form}: {n} rows of {rows}"
    except urllib.error.HTTPError as e:
        return f"{form}: {e.code} {e.read(500)!r}"
    except Exception as e:
        return f"{form}: {e!r:.500} ({traceback.extract_tb(e.__traceback__)[-1].name})"


if __name__ == "__main__":
    address, rows, formats = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with multiprocessing.Pool(2, maxtasksperchild=4) as pool:
        for line in pool.imap_unordered(judge, [(address, rows, form) for form in formats]):
            print(line, flush=True)
