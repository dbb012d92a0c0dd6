// One coin: its price, its history, what the price is made from, and what was served at any instant of the past.
import { batch, signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { data, every, get, type Chart, type Explanation, type ListEntry } from "./lib/api"
import { CandleChart } from "./lib/chart"
import { amount, clock, count, day, local, outside, percent, plain, price, sign, usd } from "./lib/format"
import { mount } from "./lib/live"
import { Star } from "./lib/star"
import { Stream } from "./lib/stream"
import { TimeMachine } from "./time-machine"
import { Why } from "./why"

interface Coin {
  id: string
  symbol: string
  name: string
  description?: string
  homepage?: string
  marketCapRank?: number
  categories: string[]
  platforms: Record<string, string>
  marketCap?: number
  currentPrice?: number
  priceSource?: string
  priceChangePercentage24h?: number
  totalVolume?: number
  circulatingSupply?: number
  totalSupply?: number
  maxSupply?: number | null
  createdAt?: string
  attribution: { source: string; name?: string; url?: string; license?: string; text?: string }[]
}

interface Market {
  exchange: string
  pair: string
  venueSymbol: string
  price: number
  priceUsd?: number
  volume24h: number
  bid?: number
  ask?: number
  updatedAt?: string
}

interface Data {
  coin: { data: Coin }
  why?: { data: Explanation }
  whyNot?: string
  markets?: { markets: Market[] }
  row?: { prices: ListEntry[] }
}

const given = data<Data>()
const coin = given.coin.data
const symbol = plain(coin.symbol).toUpperCase()
const name = plain(coin.name)
const row = given.row?.prices[0]

const now = signal({ price: row?.priceUsd ?? coin.currentPrice, h24: coin.priceChangePercentage24h, source: "", moved: "" as "" | "up" | "down", stale: row?.isStale ?? false })
const why = signal(given.why?.data)
const markets = signal(given.markets?.markets ?? [])

const frames = [["1h", "1 h"], ["24h", "24 h"], ["7d", "7 d"], ["30d", "30 d"], ["90d", "90 d"], ["1y", "1 y"], ["max", "5 y"]] as const
type Frame = (typeof frames)[number][0]
const frame = signal<Frame>("24h")
const chart = signal<Chart | undefined>(undefined)
const chartFault = signal("")

// few markets are shown until the reader asks for all.
const few = 12
const allMarkets = signal(false)

const again = 4000 // milliseconds after which candles are asked for again that could not be had

async function draw(): Promise<void> {
  const wanted = frame.peek()
  try {
    const answer = await get<{ data: Chart }>(`/api/v1/charts/${encodeURIComponent(coin.id)}?timeframe=${wanted}`)
    if (wanted !== frame.peek()) return
    batch(() => {
      chart.value = answer.data
      chartFault.value = ""
    })
  } catch (e) {
    if (wanted !== frame.peek()) return
    chartFault.value = e instanceof Error ? e.message : String(e)
    if (chart.peek()?.timeframe !== wanted) setTimeout(() => void draw(), again)
  }
}

function Now() {
  const { price: p, h24, source, moved, stale } = now.value
  return (
    <p class="quote">
      <b class={"now " + moved} data-value={p}>{usd(p)}</b>
      <span class={"h24 " + sign(h24)}>{percent(h24)} <span class="dim">in 24 h</span></span>
      {stale ? <span class="stale">no fresh price: the last one</span> : source ? <span class="dim">nearest venue {plain(source)}</span> : null}
    </p>
  )
}

function Facts() {
  const facts: [string, string][] = [
    ["Market cap", amount(coin.marketCap)],
    ["Volume 24 h", amount(coin.totalVolume)],
    ["Circulating", coin.circulatingSupply === undefined ? "–" : amount(coin.circulatingSupply, "") + " " + symbol],
    ["Most there can be", coin.maxSupply === null ? "no limit" : coin.maxSupply === undefined ? "–" : amount(coin.maxSupply, "") + " " + symbol],
  ]
  return <dl class="strip">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
}

function Candles() {
  const place = useRef<HTMLDivElement>(null)
  const held = useRef<{ chart: CandleChart; of: string } | undefined>(undefined)
  const shown = chart.value
  const points = shown?.dataPoints ?? []
  const { price: p } = now.value
  useEffect(() => {
    if (!place.current) return
    const made = new CandleChart(place.current)
    held.current = { chart: made, of: "" }
    return () => made.remove()
  }, [])
  useEffect(() => {
    const h = held.current
    if (!h || !shown) return
    h.chart.show(points, h.of !== shown.timeframe, shown.resolution === "1d")
    h.of = shown.timeframe
  }, [shown])
  useEffect(() => {
    if (p !== undefined) held.current?.chart.live(p)
  }, [p])
  const stats = shown?.stats
  const long = frames.find(([f]) => f === shown?.timeframe)?.[1] ?? ""
  return (
    <section class="history" aria-labelledby="history">
      <h2 id="history" class="hidden">History</h2>
      <div class="frames" role="group" aria-label="Period">
        {frames.map(([f, text]) => (
          <button key={f} type="button" class="chip" aria-pressed={frame.value === f} onClick={() => { frame.value = f; void draw() }}>{text}</button>
        ))}
      </div>
      <div class="chart" role="img" aria-label={`Candles of ${name} over ${long}`}><div class="canvas" ref={place} />
        {points.length && shown?.timeframe === frame.value ? null : <p class="nothing">{shown?.timeframe === frame.value ? "No candles of this period yet." : chartFault.value || "…"}</p>}
      </div>
      {stats?.minPrice === undefined ? null : (
        <p class="stats">{long}: low <b>{price(stats.minPrice)}</b> · high <b>{price(stats.maxPrice)}</b> · mean of the closes <b>{price(stats.avgPrice)}</b> · <span class={sign(stats.changePct)}>{percent(stats.changePct)}</span></p>
      )}
    </section>
  )
}

function Markets() {
  const list = markets.value
  if (!list.length) return null
  return (
    <section aria-labelledby="markets">
      <h2 id="markets">Markets <span class="dim">{count(list.length)}</span></h2>
      <div class="wide" tabindex={0} role="region" aria-labelledby="markets">
        <table class="plain">
          <thead><tr><th scope="col">Venue</th><th scope="col">Pair</th><th scope="col" class="number">Price there</th><th scope="col" class="number">USD</th><th scope="col" class="number">Spread, bps</th><th scope="col" class="number">Volume 24 h</th><th scope="col" class="number">Heard</th></tr></thead>
          <tbody>{(allMarkets.value ? list : list.slice(0, few)).map((m) => (
            <tr key={m.exchange + m.venueSymbol}>
              <th scope="row">{plain(m.exchange)}</th><td class="dim">{plain(m.pair)}</td><td class="number">{price(m.price)}</td><td class="number">{usd(m.priceUsd)}</td>
              <td class="number">{m.bid && m.ask ? (((m.ask - m.bid) / m.ask) * 1e4).toFixed(1) : "–"}</td>
              <td class="number">{amount(m.volume24h)}</td>
              <td class="number dim">{m.updatedAt ? <time title={local(Date.parse(m.updatedAt))}>{clock(Date.parse(m.updatedAt))}</time> : "–"}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {list.length > few && !allMarkets.value ? <button type="button" class="chip more" onClick={() => (allMarkets.value = true)}>All {count(list.length)}</button> : null}
    </section>
  )
}

function Outside({ to, children }: { to: string | undefined; children: preact.ComponentChildren }) {
  const href = outside(to)
  return href ? <a href={href} rel="noopener noreferrer nofollow">{children}</a> : <span>{children}</span>
}

function About() {
  const homepage = outside(coin.homepage)
  const chains = Object.entries(coin.platforms)
  if (!coin.description && !homepage && !chains.length && !coin.categories.length) return null
  return (
    <section aria-labelledby="about" class="about">
      <h2 id="about">About</h2>
      {coin.description ? <p>{plain(coin.description)}</p> : null}
      <dl class="facts">
        {homepage ? <div><dt>Homepage</dt><dd><Outside to={homepage}>{new URL(homepage).host}</Outside></dd></div> : null}
        {coin.categories.length ? <div><dt>Categories</dt><dd>{coin.categories.slice(0, 12).map(plain).join(", ")}</dd></div> : null}
        {coin.createdAt ? <div><dt>Since</dt><dd>{day(Date.parse(coin.createdAt))}</dd></div> : null}
        {chains.slice(0, 8).map(([chain, address]) => <div key={chain}><dt>{plain(chain)}</dt><dd class="address">{plain(address)}</dd></div>)}
      </dl>
      {coin.attribution.map((a) => (
        <p key={a.source} class="dim small">{plain(a.text ?? "")} <Outside to={a.url}>{plain(a.name ?? a.source)}</Outside>{a.license ? `, ${plain(a.license)}` : ""}</p>
      ))}
    </section>
  )
}

function Page() {
  return (
    <>
      <div class="titles coin-title">
        <i class="mark" aria-hidden="true">{[...symbol][0] ?? "?"}</i>
        <h1>{name} <span class="ticker">{symbol}{coin.marketCapRank ? ` · rank ${coin.marketCapRank}` : ""}</span></h1>
        <Star id={coin.id} name={name} />
      </div>
      <Now />
      <Facts />
      <Candles />
      {why.value ? <><Why of={why} /><TimeMachine id={coin.id} present={why} /></> : <section class="why"><h2>Why this number</h2><p>{plain(given.whyNot ?? "It is not known what the price is made from.")}</p></section>}
      <Markets />
      <About />
    </>
  )
}

mount(<Page />)
void draw()
new Stream({
  prices(changed) {
    const c = changed.find((x) => x.coinId === coin.id)
    if (!c) return
    const before = now.value.price
    now.value = { price: c.price, h24: c.changePercent24h ?? now.value.h24, source: c.source, stale: c.isStale ?? false, moved: before === undefined || c.price === before ? "" : c.price > before ? "up" : "down" }
  },
  stale(coins, is) {
    if (coins.some((s) => s.coinId === coin.id)) now.value = { ...now.value, stale: is }
  },
}, [coin.id]).start()
every(30_000, draw)
every(20_000, async () => (markets.value = (await get<{ markets: Market[] }>(`/api/v1/coins/${encodeURIComponent(coin.id)}/markets?limit=50`)).markets))
if (why.value) every(4000, async () => (why.value = (await get<{ data: Explanation }>(`/api/v1/prices/${encodeURIComponent(coin.id)}/explain`)).data))
