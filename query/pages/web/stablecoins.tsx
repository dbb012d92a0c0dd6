// Stablecoins and their pegs. Prices come by the stream; how far they are from the peg is asked for, since the API knows the peg.
import { batch, signal } from "@preact/signals"
import { data, every, get } from "./lib/api"
import { amount, bps, clock, count, day, plain, sign, signed, usd } from "./lib/format"
import { mount } from "./lib/live"
import { path } from "./lib/sparkline"
import { Stream } from "./lib/stream"
import { order, Table, type Column } from "./lib/table"

interface Peg {
  id: string
  symbol: string
  name: string
  marketCap?: number
  pegDeviation?: number
  stabilityScore?: number
  components?: { meanBps: number; p95Bps: number; nowBps: number; samples: number }
  price?: number
  priceSource?: string
  pegCurrency: string
  pegMechanism?: string
  isDepegged: boolean
  isStale: boolean
}

interface Answer {
  stablecoins: Peg[]
  meta: { attributions?: string[] }
}

interface Past {
  window: string
  history: { timestamp: string; value: number }[]
  episodes: { start: string; trough: string; troughBps: number; recovery?: string; durationSeconds: number; ongoing: boolean }[]
  nativeQuotes: { exchange: string; venueSymbol: string; price: number; deviationBps?: number; accepted: boolean }[]
  meta: { reason?: string }
}

const given = data<{ stablecoins: Answer }>().stablecoins
const pegs = signal(given.stablecoins)
const prices = signal(new Map<string, number>())
const fault = signal("")
const opened = signal("")
const past = signal<Past | undefined>(undefined)
const pastFault = signal("")
const by = order("")

// fullScale is the deviation that fills half of a bar: from there a peg counts as lost.
const fullScale = 50

function Bar({ of }: { of: Peg }) {
  const d = of.pegDeviation
  if (d === undefined) return <span class="dim">no price</span>
  const half = 60 // of the picture's width of 120
  const width = Math.min(1, Math.abs(d) / fullScale) * half
  return (
    <svg class={"peg " + (of.isDepegged ? "far" : Math.abs(d) < fullScale / 5 ? "near" : "late")} viewBox="0 0 120 14" width="120" height="14" aria-hidden="true">
      <rect class="ground" x="0" y="5" width="120" height="4" rx="2" />
      <rect class="reach" x={d < 0 ? half - width : half} y="3" width={Math.max(1.5, width)} height="8" rx="1.5" />
      <rect class="zero" x={half - 0.5} y="0" width="1" height="14" />
    </svg>
  )
}

function State({ of }: { of: Peg }) {
  if (of.isDepegged) return <span class="state down"><i class="dot" />off its peg</span>
  if (of.isStale) return <span class="stale">stale</span>
  return of.pegDeviation === undefined ? <span class="dim">–</span> : <span class="state"><i class="dot" />held</span>
}

async function open(id: string): Promise<void> {
  batch(() => {
    opened.value = opened.peek() === id ? "" : id
    past.value = undefined
    pastFault.value = ""
  })
  if (!opened.peek()) return
  try {
    const answer = await get<Past>(`/api/v1/stablecoins/${encodeURIComponent(id)}/peg-stability?window=30d`)
    if (opened.peek() === id) past.value = answer
  } catch (e) {
    if (opened.peek() === id) pastFault.value = e instanceof Error ? e.message : String(e)
  }
}

function Price({ of }: { of: Peg }) {
  const now = prices.value.get(of.id) ?? of.price
  return <span data-value={now}>{usd(now)}</span>
}

const columns: Column<Peg>[] = [
  { key: "coin", name: "Coin", sort: (p) => p.symbol, cell: (p) => <a href={"/coins/" + encodeURIComponent(p.id)}><b>{plain(p.symbol)}</b> <span class="dim">{plain(p.name)}</span></a> },
  { key: "price", name: "Price", class: "number price", sort: (p) => prices.value.get(p.id) ?? p.price, cell: (p) => <Price of={p} /> },
  { key: "off", name: "Off its peg, bps", class: "number off", sort: (p) => p.pegDeviation, cell: (p) => <span class={sign(p.pegDeviation)} data-value={p.pegDeviation}>{signed(p.pegDeviation)}</span> },
  { key: "bar", name: "−50 … +50", class: "bar", cell: (p) => <Bar of={p} /> },
  { key: "state", name: "State", sort: (p) => (p.isDepegged ? 0 : p.isStale ? 1 : 2), cell: (p) => <State of={p} /> },
  {
    key: "score", name: "Score", class: "number", title: "Of 100: less half of the mean, 0.3 of the 95th percentile and 0.2 of the newest deviation in basis points, over the minutes of 30 days", sort: (p) => p.stabilityScore,
    cell: (p) => <span title={p.components ? `mean ${bps(p.components.meanBps)}, 95th percentile ${bps(p.components.p95Bps)}, now ${bps(p.components.nowBps)} bps, of ${count(p.components.samples)} minutes` : "There is no history"}>{p.stabilityScore === undefined ? "–" : p.stabilityScore.toFixed(1)}</span>,
  },
  { key: "cap", name: "Market cap", class: "number", sort: (p) => p.marketCap, cell: (p) => amount(p.marketCap) },
  { key: "peg", name: "Peg", class: "dim", sort: (p) => p.pegCurrency, cell: (p) => plain(p.pegCurrency) + (p.pegMechanism ? ", " + plain(p.pegMechanism) : "") },
  { key: "more", name: "30 days", cell: (p) => <button type="button" class="chip small" aria-expanded={opened.value === p.id} aria-label={`${opened.value === p.id ? "close" : "show"} 30 days of ${plain(p.name)}`} onClick={() => void open(p.id)}>{opened.value === p.id ? "close" : "show"}</button> },
]

function Detail() {
  const peg = pegs.value.find((p) => p.id === opened.value)
  if (!peg) return null
  const p = past.value
  const name = plain(peg.symbol)
  const values = p?.history.map((h) => h.value) ?? []
  const d = path(values)
  return (
    <section class="machine peg-detail" aria-labelledby="detail" aria-live="polite">
      <h2 id="detail">{name} over 30 days</h2>
      {pastFault.value ? <p class="fault">{pastFault.value}</p> : null}
      {!p && !pastFault.value ? <p class="dim">…</p> : null}
      {p ? (
        <>
          {d ? (
            <>
              <svg class="line wide-line" viewBox="0 0 120 32" preserveAspectRatio="none" role="img" aria-label={`Deviation of ${name} from its peg over 30 days`}><path d={d} /></svg>
              <p class="stats">from <b>{signed(Math.min(...values))}</b> to <b>{signed(Math.max(...values))}</b> bps at the ends of {count(values.length)} steps</p>
            </>
          ) : <p class="dim">{p.meta.reason === "no_history" ? "None of our venues trades it: there is no history." : "There is no history yet."}</p>}
          <h3>Times in which it had lost its peg: 50 basis points or more away, until less than 25</h3>
          {p.episodes.length ? (
            <ul class="episodes">{p.episodes.slice(-10).reverse().map((e) => (
              <li key={e.start}>{day(Date.parse(e.start))} {clock(Date.parse(e.start))}, for {count(Math.round(e.durationSeconds / 60))} min, at most <b class="down">{signed(e.troughBps)}</b> bps{e.ongoing ? " (goes on)" : ""}</li>
            ))}</ul>
          ) : <p class="dim">None.</p>}
          {p.nativeQuotes.length ? (
            <>
              <h3>Markets of the price</h3>
              <div class="wide" tabindex={0} role="region" aria-label="Markets of the price">
                <table class="plain">
                  <thead><tr><th scope="col">Venue</th><th scope="col">Market</th><th scope="col" class="number">Price there</th><th scope="col" class="number">Off, bps</th><th scope="col">Used</th></tr></thead>
                  <tbody>{p.nativeQuotes.map((q) => (
                    <tr key={q.exchange + q.venueSymbol} class={q.accepted ? undefined : "left-out"}><th scope="row">{plain(q.exchange)}</th><td class="dim">{plain(q.venueSymbol)}</td><td class="number">{q.price.toPrecision(6)}</td><td class="number">{signed(q.deviationBps)}</td><td>{q.accepted ? "yes" : "no"}</td></tr>
                  ))}</tbody>
                </table>
              </div>
            </>
          ) : null}
        </>
      ) : null}
    </section>
  )
}

function Page() {
  const lost = pegs.value.filter((p) => p.isDepegged).length
  return (
    <>
      {fault.value ? <p class="fault" role="alert">{fault.value}</p> : null}
      <p class="dim">{count(pegs.value.length)} stablecoins, {lost ? <b class="down">{count(lost)} off their pegs</b> : "all that have a price near their pegs"}.</p>
      <Detail />
      <Table name="Stablecoins" class="pegs" columns={columns} rows={pegs.value} id={(p) => p.id} by={by} empty="No stablecoin has a market cap yet." />
      {given.meta.attributions?.map((text) => <p key={text} class="dim small">{plain(text)}</p>)}
    </>
  )
}

mount(<Page />)
// Of coins that no venue trades the stream brings nothing; a message that selects coins is 4,096 bytes long at most.
const ids = given.stablecoins.filter((p) => p.priceSource === "median").slice(0, 80).map((p) => p.id)
// The rows receive at most every two seconds what the stream brings: dozens of coins that move by a basis point a second.
let changed: [string, number][] = []
new Stream({ prices: (sent) => void changed.push(...sent.map((c): [string, number] => [c.coinId, c.price])) }, ids.length ? ids : ["bitcoin"]).start()
setInterval(() => {
  if (!changed.length || document.hidden) return
  prices.value = new Map([...prices.peek(), ...changed])
  changed = []
}, 2000)
every(10_000, async () => {
  try {
    const answer = await get<Answer>("/api/v1/stablecoins/index?limit=200")
    batch(() => {
      pegs.value = answer.stablecoins
      fault.value = ""
    })
  } catch (e) {
    fault.value = e instanceof Error ? e.message : String(e)
    throw e
  }
})
