export type FileFormat = "Parquet" | "ArrowStream" | "CSVWithNames"

/** The rows of a statement. Integers of 64 bits are texts, as in JSON; Parquet and Arrow have them as numbers. */
export class Rows implements Iterable<Record<string, unknown>> {
  readonly columns: string[]
  readonly types: string[]
  readonly rows: unknown[][]

  constructor(body: { meta: { name: string; type: string }[]; data: unknown[][] }) {
    this.columns = body.meta.map((c) => c.name)
    this.types = body.meta.map((c) => c.type)
    this.rows = body.data
  }

  get length(): number {
    return this.rows.length
  }

  /** Each row as an object. */
  *[Symbol.iterator](): Generator<Record<string, unknown>> {
    for (const row of this.rows) yield Object.fromEntries(this.columns.map((name, i) => [name, row[i]]))
  }
}
