// Statements: the box, samples, what there is to ask, and the rows. Files are made by the form itself, without a script.
import { signal } from "@preact/signals"
import { render } from "preact"
import { completeIn } from "./completion"
import { data } from "./lib/api"
import type { View } from "./lib/complete"
import { amount, count, plain } from "./lib/format"
import { mount } from "./lib/live"
import { path } from "./lib/sparkline"
import { Stream } from "./lib/stream"

interface Data {
  served: boolean
  statement: string
  samples: { name: string; statement: string }[]
  // parameterized are views that take parameters: the engine lists no columns of these.
  parameterized: View[] | null
}

interface Result {
  meta: { name: string; type: string }[]
  data: unknown[][]
  rows: number
  statistics?: { elapsed: number; rows_read: number; bytes_read: number }
}

interface Fault {
  message: string
  position?: number
  line?: number
  column?: number
  hint?: string
}

const given = data<Data>()
const result = signal<Result | undefined>(undefined)
const fault = signal<Fault | undefined>(undefined)
const running = signal(false)
const views = signal<View[]>([])
const box = document.querySelector<HTMLTextAreaElement>("#query")

// most are the rows that are shown: a page of ten thousand rows cannot be read, and the files have all.
const most = 500

class SQLFault extends Error {
  constructor(readonly fault: Fault) {
    super(fault.message)
  }
}

async function ask(statement: string): Promise<Result> {
  const answer = await fetch("/api/v1/sql", {
    method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: JSON.stringify({ query: statement }),
  })
  const body = (await answer.json()) as Result & { error?: Fault }
  if (!answer.ok || body.error) throw new SQLFault(body.error ?? { message: "the server answered " + answer.status })
  return body
}

async function run(): Promise<void> {
  if (!box || running.peek()) return
  const statement = box.value
  running.value = true
  try {
    result.value = await ask(statement)
    fault.value = undefined
    const link = new URL(location.href)
    link.search = statement.length < 2000 ? "?query=" + encodeURIComponent(statement) : ""
    history.replaceState(null, "", link)
  } catch (e) {
    result.value = undefined
    fault.value = e instanceof SQLFault ? e.fault : { message: e instanceof Error ? e.message : String(e) }
    const at = fault.value.position
    if (at !== undefined && box.value === statement) {
      const from = [...statement].slice(0, at - 1).join("").length
      box.focus()
      box.setSelectionRange(from, from + (/^\w+/.exec(statement.slice(from))?.[0].length ?? 1))
    }
  } finally {
    running.value = false
  }
}

function use(statement: string): void {
  if (!box) return
  box.value = statement
  box.focus()
  void run()
}

// insert puts a name where the cursor is.
function insert(text: string): void {
  if (!box) return
  box.setRangeText(text, box.selectionStart, box.selectionEnd, "end")
  box.focus()
}

const isNumber = (type: string) => /^(Nullable\()?(LowCardinality\()?(U?Int|Float|Decimal)/.test(type)
const isTime = (type: string) => /^(Nullable\()?Date/.test(type)

function cell(value: unknown): string {
  if (value === null) return "NULL"
  return plain(typeof value === "string" ? value : JSON.stringify(value))
}

// Chart draws the first number over the first time, if there are both.
function Chart({ of }: { of: Result }) {
  const time = of.meta.findIndex((m) => isTime(m.type))
  const number = of.meta.findIndex((m) => isNumber(m.type))
  if (time < 0 || number < 0 || of.data.length < 3) return null
  const points = of.data.slice(0, 5000).map((row) => [String(row[time]), Number(row[number])] as const).filter(([, y]) => Number.isFinite(y)).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const d = path(points.map(([, y]) => y))
  const name = plain(of.meta[number]?.name ?? "")
  if (!d) return null
  return (
    <figure class="drawn">
      <svg class="line wide-line" viewBox="0 0 120 32" preserveAspectRatio="none" role="img" aria-label={`${name} in the order of time`}><path d={d} /></svg>
      <figcaption class="stats">{name}, from {points[0]?.[0]} to {points[points.length - 1]?.[0]}</figcaption>
    </figure>
  )
}

function Rows() {
  const f = fault.value
  if (f) {
    return (
      <div class="fault" role="alert">
        <p>{plain(f.message)}</p>
        <p class="dim">{f.line === undefined ? null : `line ${f.line}, column ${f.column}`}{f.hint ? `${f.line === undefined ? "" : ": "}${plain(f.hint)}` : null}</p>
      </div>
    )
  }
  const r = result.value
  if (!r) return null
  const s = r.statistics
  return (
    <section aria-labelledby="rows">
      <h2 id="rows" class="result" data-rows={r.rows}>{count(r.rows)} {r.rows === 1 ? "row" : "rows"}{s ? <span class="dim"> in {(s.elapsed * 1000).toFixed(0)} ms, {count(s.rows_read)} rows and {amount(s.bytes_read, "")}B read</span> : null}</h2>
      <Chart of={r} />
      {r.data.length ? (
        <div class="wide grid" tabindex={0} role="region" aria-label="Rows">
          <table class="plain">
            <thead><tr>{r.meta.map((m, i) => <th key={i} scope="col" class={isNumber(m.type) ? "number" : undefined} title={m.type}>{plain(m.name)}</th>)}</tr></thead>
            <tbody>{r.data.slice(0, most).map((row, y) => (
              <tr key={y}>{row.map((value, x) => <td key={x} class={value === null ? "dim" : isNumber(r.meta[x]?.type ?? "") ? "number" : undefined}>{cell(value)}</td>)}</tr>
            ))}</tbody>
          </table>
        </div>
      ) : <p class="dim">The statement found nothing.</p>}
      {r.data.length > most ? <p class="dim">The first {count(most)} are shown; the files have all.</p> : null}
    </section>
  )
}

function Samples() {
  return (
    <section aria-labelledby="samples">
      <h2 id="samples">Statements to begin with</h2>
      <div class="samples">{given.samples.map((s) => <button key={s.name} type="button" class="chip sample" onClick={() => use(s.statement)}>{s.name}</button>)}</div>
    </section>
  )
}

function Schema() {
  if (!views.value.length) return null
  return (
    <section aria-labelledby="schema">
      <h2 id="schema">What there is <span class="dim">{count(views.value.length)} views</span></h2>
      {views.value.map((v) => (
        <details key={v.name} class="view">
          <summary><code>{v.name}</code> <span class="dim">{count(v.columns.length)} columns</span></summary>
          <dl class="facts">{v.columns.map((c) => (
            <div key={c.name}><dt><button type="button" class="sort" title={c.type} onClick={() => insert(c.name)}>{c.name}</button></dt><dd><span class="dim small">{plain(c.type)}</span> {plain(c.comment)}</dd></div>
          ))}</dl>
        </details>
      ))}
    </section>
  )
}

function Elsewhere() {
  return (
    <section aria-labelledby="elsewhere">
      <h2 id="elsewhere">The same elsewhere</h2>
      <pre class="wide" tabindex={0}><code>{`curl -H "Authorization: Bearer $MARKETLOG_API_KEY" --data-binary @statement.sql "${location.origin}/api/v1/sql?format=Parquet" -o rows.parquet

import httpx, io, os, polars as pl
answer = httpx.post("${location.origin}/api/v1/sql", headers={"Authorization": f"Bearer {os.environ['MARKETLOG_API_KEY']}"}, json={"query": statement, "format": "Parquet"})
rows = pl.read_parquet(io.BytesIO(answer.content))`}</code></pre>
    </section>
  )
}

const schema = "SELECT table, name, type, comment FROM system.columns WHERE database = 'default' AND table LIKE 'v\\\\_%' AND table != 'v_usage' ORDER BY table, position"

async function describe(): Promise<void> {
  const found = new Map<string, View>()
  for (const [table, name, type, comment] of (await ask(schema)).data as string[][]) {
    const view = found.get(table ?? "") ?? { name: table ?? "", columns: [] }
    view.columns.push({ name: name ?? "", type: type ?? "", comment: comment ?? "" })
    found.set(view.name, view)
  }
  for (const view of given.parameterized ?? []) found.set(view.name, view)
  views.value = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function Run() {
  return <button type="button" class="chip go" disabled={running.value} onClick={() => void run()}>{running.value ? "Running …" : "Run"} <kbd aria-hidden="true">Ctrl ⏎</kbd></button>
}

if (given.served && box) {
  mount(<><Rows /><Samples /><Schema /><Elsewhere /></>)
  const place = document.getElementById("run")
  if (place) render(<Run />, place)
  completeIn(box, () => views.peek())
  box.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return
    e.preventDefault()
    void run()
  })
  void describe().catch(() => undefined)
} else {
  mount(null)
}
// The head of the page shows the log's time; no price is needed here.
new Stream({ prices: () => undefined }, ["bitcoin"]).start()
