// A table whose columns sort. It is for some hundreds of rows that change every some seconds; those of the prices, which move each
// second, are a table of their own.
import { signal, type Signal } from "@preact/signals"

export interface Column<Row> {
  key: string
  name: string
  class?: string
  title?: string
  // sort is what the rows are sorted by; a column without it does not sort.
  sort?: (row: Row) => number | string | undefined
  cell: (row: Row) => preact.ComponentChild
}

export interface Order {
  key: string
  down: boolean
}

export const order = (key: string, down = false): Signal<Order> => signal({ key, down })

// sorted is stable, and what is not known comes last either way.
export function sorted<Row>(rows: Row[], columns: Column<Row>[], by: Order): Row[] {
  const sort = columns.find((c) => c.key === by.key)?.sort
  if (!sort) return rows
  return rows
    .map((row, i) => ({ row, i, v: sort(row) }))
    .sort((a, b) => {
      if (a.v === undefined || b.v === undefined) return a.v === b.v ? a.i - b.i : a.v === undefined ? 1 : -1
      const less = a.v < b.v ? -1 : a.v > b.v ? 1 : 0
      return less === 0 ? a.i - b.i : by.down ? -less : less
    })
    .map((x) => x.row)
}

interface Props<Row> {
  name: string
  class?: string
  columns: Column<Row>[]
  rows: Row[]
  id: (row: Row) => string
  by: Signal<Order>
  empty: string
}

function Head<Row>({ of, by }: { of: Column<Row>; by: Signal<Order> }) {
  const on = by.value.key === of.key
  const { sort } = of
  if (!sort) return <th scope="col" class={of.class} title={of.title}>{of.name}</th>
  // Numbers begin with the largest, words with the first.
  const first = of.class?.includes("number") ?? false
  return (
    <th scope="col" class={of.class} title={of.title} aria-sort={on ? (by.value.down ? "descending" : "ascending") : undefined}>
      <button type="button" class={on ? "sort on" : "sort"} onClick={() => (by.value = { key: of.key, down: on ? !by.value.down : first })}>
        {of.name}{on ? (by.value.down ? " ↓" : " ↑") : ""}
      </button>
    </th>
  )
}

export function Table<Row>({ name, class: kind, columns, rows, id, by, empty }: Props<Row>) {
  return (
    <div class="wide" tabindex={0} role="region" aria-label={name}>
      <table class={"plain " + (kind ?? "")}>
        <caption class="hidden">{name}</caption>
        <thead><tr>{columns.map((c) => <Head key={c.key} of={c} by={by} />)}</tr></thead>
        <tbody>
          {rows.length
            ? sorted(rows, columns, by.value).map((row) => (
              <tr key={id(row)} data-id={id(row)}>
                {columns.map((c, i) => (i ? <td key={c.key} class={c.class}>{c.cell(row)}</td> : <th key={c.key} scope="row" class={c.class}>{c.cell(row)}</th>))}
              </tr>
            ))
            : <tr><td class="empty" colSpan={columns.length}>{empty}</td></tr>}
        </tbody>
      </table>
    </div>
  )
}
