// The table of all coins. A row has a signal for each cell that moves, and only rows on the screen are updated by a change: of two
// hundred coins that move each second, some twenty are seen.
import { batch, computed, signal, type Signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { data, every, get, type ListEntry } from "./lib/api"
import { amount, bps, count, percent, plain, sign, usd } from "./lib/format"
import { mount } from "./lib/live"
import { Sparkline } from "./lib/sparkline"
import { Star } from "./lib/star"
import { Stream, type Price, type State } from "./lib/stream"
import { watched } from "./lib/watchlist"

interface RowData {
  id: string
  symbol: string
  name: string
  rank?: number
  price: number
  source: string
  h1?: number
  h24?: number
  d7?: number
  cap?: number
  volume?: number
  line?: number[]
  providers?: number
  rejected?: number
  confidence?: number
  stale?: boolean
}

interface Market {
  totalMarketCapUsd: number
  volume24hUsd: number
  btcDominance: number
  ethDominance: number
  trend24h?: number
  fearGreed?: { value: number; classification: string; attribution?: string; source: string }
}

interface Data {
  rows: RowData[]
  market?: { data: Market }
  young?: boolean
}

// Moving is what changes in a row.
interface Moving {
  price: number
  h24: number | undefined
  stale: boolean
  moved: "up" | "down" | ""
}

interface Venues {
  providers: number | undefined
  rejected: number | undefined
  confidence: number | undefined
}

class Row {
  readonly moving: Signal<Moving>
  readonly venues: Signal<Venues>
  // known is the newest, shown when the row comes into sight.
  known: Moving
  seen = false

  constructor(readonly data: RowData) {
    this.known = { price: data.price, h24: data.h24, stale: data.stale ?? false, moved: "" }
    this.moving = signal(this.known)
    this.venues = signal<Venues>({ providers: data.providers, rejected: data.rejected, confidence: data.confidence })
  }

  // show shows what is known, if the row is seen.
  show(): void {
    if (this.seen && this.moving.peek() !== this.known) this.moving.value = this.known
  }
}

const given = data<Data>()
const rows = given.rows.map((r) => new Row(r))
const byID = new Map(rows.map((r) => [r.data.id, r]))
const market = signal<Market | undefined>(given.market?.data)

type Key = "rank" | "name" | "price" | "h1" | "h24" | "d7" | "cap" | "volume" | "venues"
const sort = signal<{ key: Key; down: boolean }>({ key: "rank", down: false })
const search = signal("")
const onlyWatched = signal(false)

function value(r: Row, key: Key): number | string | undefined {
  switch (key) {
    case "rank":
      return r.data.rank
    case "name":
      return r.data.symbol
    case "price":
      return r.known.price
    case "h24":
      return r.known.h24
    case "venues":
      return r.venues.peek().providers
    default:
      return r.data[key]
  }
}

// shown is in an order that stays until the reader asks for another: rows that jump cannot be read.
const shown = computed(() => {
  const { key, down } = sort.value
  const words = search.value.trim().toLowerCase()
  const list = rows.filter((r) =>
    (!onlyWatched.value || watched.value.has(r.data.id)) &&
    (!words || r.data.symbol.toLowerCase().includes(words) || r.data.name.toLowerCase().includes(words) || r.data.id.includes(words)))
  return list
    .map((r, i) => ({ r, i, v: value(r, key) }))
    .sort((a, b) => {
      if (a.v === undefined || b.v === undefined) return a.v === b.v ? a.i - b.i : a.v === undefined ? 1 : -1
      const order = a.v < b.v ? -1 : a.v > b.v ? 1 : 0
      return order === 0 ? a.i - b.i : down ? -order : order
    })
    .map((x) => x.r)
})

const eyes = new IntersectionObserver((entries) => {
  batch(() => {
    for (const e of entries) {
      const row = byID.get((e.target as HTMLElement).dataset["id"] ?? "")
      if (!row) continue
      row.seen = e.isIntersecting
      row.show()
    }
  })
}, { rootMargin: "120px" })

function PriceCell({ row }: { row: Row }) {
  const m = row.moving.value
  return (
    <td class={(m.stale ? "price last " : "price ") + m.moved} data-value={m.price}>
      {m.stale ? <span class="stale" title="There is no fresh price: this is the last one">stale</span> : null}
      {usd(m.price)}
    </td>
  )
}

function DayCell({ row }: { row: Row }) {
  const { h24 } = row.moving.value
  return <td class={"h24 " + sign(h24)}>{percent(h24)}</td>
}

function VenuesCell({ row }: { row: Row }) {
  const { providers, rejected, confidence } = row.venues.value
  if (providers === undefined) return <td class="venues"><span class="source" title="No venue trades it: the price is of a reference source">{plain(row.data.source)}</span></td>
  const all = providers + (rejected ?? 0)
  return (
    <td class="venues" title={`${providers} of ${all} venues make the price; half width of the interval around it in basis points`}>
      <span class={rejected ? "some" : ""}>{providers}/{all}</span> <span class="spread">± {bps(confidence === undefined ? undefined : (confidence / row.known.price) * 1e4)}</span>
    </td>
  )
}

function TableRow({ row }: { row: Row }) {
  const d = row.data
  const place = useRef<HTMLTableRowElement>(null)
  useEffect(() => {
    const tr = place.current
    if (!tr) return
    eyes.observe(tr)
    return () => {
      eyes.unobserve(tr)
      row.seen = false
    }
  }, [row])
  return (
    <tr ref={place} data-id={d.id}>
      <td class="watch"><Star id={d.id} name={plain(d.name)} /></td>
      <td class="rank">{d.rank ?? ""}</td>
      <th scope="row" class="coin">
        <a href={"/coins/" + encodeURIComponent(d.id)}><i class="mark" aria-hidden="true">{[...plain(d.symbol)][0] ?? "?"}</i><b>{plain(d.symbol)}</b> <span>{plain(d.name)}</span></a>
      </th>
      <PriceCell row={row} />
      <td class={"h1 " + sign(d.h1)}>{percent(d.h1)}</td>
      <DayCell row={row} />
      <td class={"d7 " + sign(d.d7)}>{percent(d.d7)}</td>
      <td class="cap">{amount(d.cap)}</td>
      <td class="volume">{amount(d.volume)}</td>
      <td class="trend"><Sparkline closes={d.line} rising={(d.d7 ?? 0) >= 0} /></td>
      <VenuesCell row={row} />
    </tr>
  )
}

const heads: { key: Key; name: string; class: string; hint?: string }[] = [
  { key: "rank", name: "#", class: "rank", hint: "Rank by market capitalisation" },
  { key: "name", name: "Coin", class: "coin" },
  { key: "price", name: "Price", class: "price" },
  { key: "h1", name: "1 h", class: "h1" },
  { key: "h24", name: "24 h", class: "h24" },
  { key: "d7", name: "7 d", class: "d7" },
  { key: "cap", name: "Market cap", class: "cap" },
  { key: "volume", name: "Volume 24 h", class: "volume" },
]

function Head({ of }: { of: { key: Key; name: string; class: string; hint?: string } }) {
  const { key, down } = sort.value
  const sorted = key === of.key
  const first = of.key !== "rank" && of.key !== "name"
  return (
    <th scope="col" class={of.class} aria-sort={sorted ? (down ? "descending" : "ascending") : "none"} title={of.hint}>
      <button type="button" class={sorted ? "sort on" : "sort"} onClick={() => (sort.value = { key: of.key, down: sorted ? !down : first })}>
        {of.name}{sorted ? <span aria-hidden="true">{down ? " ↓" : " ↑"}</span> : null}
      </button>
    </th>
  )
}

function Strip() {
  const m = market.value
  if (!m) return null
  const trend = m.trend24h === undefined ? undefined : m.trend24h * 100
  return (
    <dl class="strip">
      <div><dt>Market cap</dt><dd>{amount(m.totalMarketCapUsd)} <span class={sign(trend)}>{percent(trend)}</span></dd></div>
      <div><dt>Volume 24 h</dt><dd>{amount(m.volume24hUsd)}</dd></div>
      <div><dt>Dominance</dt><dd>BTC {m.btcDominance.toFixed(1)}% <span class="dim second">ETH {m.ethDominance.toFixed(1)}%</span></dd></div>
      {m.fearGreed ? <div title={plain(m.fearGreed.attribution ?? m.fearGreed.source)}><dt>Fear &amp; greed</dt><dd>{count(m.fearGreed.value)} <span class="dim">{plain(m.fearGreed.classification)}</span></dd></div> : null}
    </dl>
  )
}

function Tools() {
  return (
    <div class="tools">
      <label class="search">
        <span class="hidden">Search coins</span>
        <input type="search" placeholder="Search coins" value={search.value} autocomplete="off" spellcheck={false}
          onInput={(e) => (search.value = e.currentTarget.value)}
          onKeyDown={(e) => {
            const first = shown.value[0]
            if (e.key === "Enter" && first) location.assign("/coins/" + encodeURIComponent(first.data.id))
            if (e.key === "Escape") search.value = ""
          }} />
        <kbd aria-hidden="true">/</kbd>
      </label>
      <button type="button" class="chip" aria-pressed={onlyWatched.value} onClick={() => (onlyWatched.value = !onlyWatched.value)}>★ Watch-list{watched.value.size ? ` ${watched.value.size}` : ""}</button>
    </div>
  )
}

function Body() {
  const list = shown.value
  if (list.length) return <tbody>{list.map((r) => <TableRow key={r.data.id} row={r} />)}</tbody>
  return <tbody><tr><td class="empty" colSpan={11}>{onlyWatched.value && !watched.value.size ? "Nothing is watched yet: the stars do that." : "No coin fits."}</td></tr></tbody>
}

function Page() {
  return (
    <>
      <Strip />
      <Tools />
      <table class="prices">
        <caption class="hidden">Coins, their prices and markets</caption>
        <thead>
          <tr>
            <th scope="col" class="watch"><span class="hidden">Watch</span></th>
            {heads.map((h) => <Head key={h.key} of={h} />)}
            <th scope="col" class="trend">7 days</th>
            <Head of={{ key: "venues", name: "Venues ± bps", class: "venues" }} />
          </tr>
        </thead>
        <Body />
      </table>
    </>
  )
}

let moved: Row[] = []

function take(changed: Price[], first: boolean): void {
  batch(() => {
    // What moved a frame ago has been seen.
    for (const row of moved) {
      row.known = { ...row.known, moved: "" }
    }
    const before = moved
    moved = []
    for (const c of changed) {
      const row = byID.get(c.coinId)
      if (!row) continue
      const up = c.price - row.known.price
      row.known = { price: c.price, h24: c.changePercent24h ?? row.known.h24, stale: c.isStale ?? false, moved: first || up === 0 ? "" : up > 0 ? "up" : "down" }
      moved.push(row)
    }
    for (const row of before) row.show()
    for (const row of moved) row.show()
  })
}

function stale(coins: State[], is: boolean): void {
  batch(() => {
    for (const { coinId } of coins) {
      const row = byID.get(coinId)
      if (!row) continue
      row.known = { ...row.known, stale: is }
      row.show()
    }
  })
}

// refresh asks how the prices on the screen came about.
async function refresh(): Promise<void> {
  const seen = rows.filter((r) => r.seen && r.data.providers !== undefined).slice(0, 60)
  if (!seen.length) return
  const answer = await get<{ prices: ListEntry[] }>("/api/v1/prices?symbols=" + seen.map((r) => encodeURIComponent(r.data.id)).join(","))
  batch(() => {
    for (const p of answer.prices) {
      const row = byID.get(p.coinId)
      if (!row) continue
      row.venues.value = { providers: p.providers, rejected: p.rejected, confidence: p.confidence }
      if (row.known.stale !== p.isStale) {
        row.known = { ...row.known, stale: p.isStale }
        row.show()
      }
    }
  })
}

addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || e.target instanceof HTMLInputElement) return
  e.preventDefault()
  document.querySelector<HTMLInputElement>(".search input")?.focus()
})

mount(<Page />)
new Stream({ prices: take, stale }).start()
every(10_000, refresh)
// An instance that has just started has no market rows until its first minutes have closed.
if (given.young) every(15_000, async () => {
  if ((await get<{ data: unknown[] }>("/api/v1/coins/markets?per_page=1")).data.length) location.reload()
})
every(60_000, async () => (market.value = (await get<{ data: Market }>("/api/v1/global-stats/summary")).data))
