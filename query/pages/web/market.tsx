// The whole market: totals, what moved most, how many rose and fell, fear and greed, and DeFi. All of it is made once a minute.
import { batch, signal } from "@preact/signals"
import { data, every, get } from "./lib/api"
import { amount, count, percent, plain, rate, sign, usd } from "./lib/format"
import { mount } from "./lib/live"
import { path } from "./lib/sparkline"
import { Stream } from "./lib/stream"
import { order, Table, type Column } from "./lib/table"

interface Mover {
  id: string
  symbol: string
  name: string
  price: number
  priceChange24h: number
  volume24h?: number
  marketCapRank: number
}

interface Segment {
  rankRange: string
  gainers: Mover[]
  losers: Mover[]
  totalGainers: number
  totalLosers: number
}

interface Sentiment {
  rankRange: string
  positive: number
  negative: number
  neutral: number
  total: number
  classification: string
  medianChange24h?: number
}

interface Summary {
  totalMarketCapUsd: number
  volume24hUsd: number
  btcDominance: number
  ethDominance: number
  metrics: {
    dominance: Record<string, number>
    marketCapChange24h?: number
    volumeChange24h?: number
    activeCoins: number
    activeMarkets: number
    stablecoinMarketCap: number
    stablecoinDominance: number
  }
  movers: { data: Segment[] }
  sentiment: { data: Sentiment[] }
  fearGreed?: {
    value: number
    classification: string
    updatedAt: string
    source: string
    attribution?: string
    history: { timestamp: string; value: number }[]
    computed?: { value: number; classification: string; components: Record<string, number> }
  }
}

interface Defi {
  totalTvl: number
  lendingTvl: number
  stakingTvl: number
  borrowingTvl: number
  cefiTvl: number
  defiMarketDominance?: number
  lendingApy?: number
  stakingApy?: number
  borrowApy?: number
  protocolCount: number
}

interface Lender {
  slug: string
  name: string
  tvl: number
  change24h?: number
  change7d?: number
  supplyApy?: number
  borrowApy?: number
  utilization?: number
}

interface Staker {
  slug: string
  name: string
  tvl: number
  apy?: number
  marketShare?: number
}

interface Data {
  summary: { data: Summary }
  defi?: { data: Defi }
  lending?: { data: { topProtocols: Lender[] } }
  staking?: { data: { topProtocols: Staker[] } }
}

const given = data<Data>()
const now = signal(given.summary.data)
const defi = signal(given.defi?.data)
const lenders = signal(given.lending?.data.topProtocols ?? [])
const stakers = signal(given.staking?.data.topProtocols ?? [])
const fault = signal("")
const segment = signal(0)

function Strip() {
  const m = now.value
  return (
    <dl class="strip">
      <div><dt>Market cap</dt><dd class="total" data-value={m.totalMarketCapUsd}>{amount(m.totalMarketCapUsd)} <span class={sign(m.metrics.marketCapChange24h)}>{percent(m.metrics.marketCapChange24h)}</span></dd></div>
      <div><dt>Volume 24 h</dt><dd>{amount(m.volume24hUsd)} <span class={sign(m.metrics.volumeChange24h)}>{percent(m.metrics.volumeChange24h)}</span></dd></div>
      <div><dt>Coins and markets</dt><dd>{count(m.metrics.activeCoins)} <span class="dim">on {count(m.metrics.activeMarkets)}</span></dd></div>
      <div><dt>Stablecoins</dt><dd>{amount(m.metrics.stablecoinMarketCap)} <span class="dim">{m.metrics.stablecoinDominance.toFixed(1)}%</span></dd></div>
    </dl>
  )
}

function Dominance() {
  const shares = Object.entries(now.value.metrics.dominance).sort(([, a], [, b]) => b - a).slice(0, 8)
  if (!shares.length) return null
  return (
    <section aria-labelledby="dominance">
      <h2 id="dominance">Dominance</h2>
      <p class="dim">Shares of the market capitalisation of all coins.</p>
      <dl class="bars">{shares.map(([symbol, share]) => (
        <div key={symbol}><dt>{plain(symbol)}</dt><dd><meter min={0} max={100} value={share} aria-label={`${plain(symbol)}, percent`} /> {share.toFixed(1)}%</dd></div>
      ))}</dl>
    </section>
  )
}

function Movers({ list, name }: { list: Mover[]; name: string }) {
  return (
    <div>
      <h3>{name}</h3>
      {list.length ? (
        <table class="plain movers">
          <caption class="hidden">{name}</caption>
          <thead><tr><th scope="col">Coin</th><th scope="col" class="number">Price</th><th scope="col" class="number">24 h</th><th scope="col" class="number cap">Volume</th></tr></thead>
          <tbody>{list.map((m) => (
            <tr key={m.id} data-id={m.id}>
              <th scope="row"><a href={"/coins/" + encodeURIComponent(m.id)}><b>{plain(m.symbol).toUpperCase()}</b> <span class="dim">{plain(m.name)}</span></a></th>
              <td class="number">{usd(m.price)}</td><td class={"number " + sign(m.priceChange24h)} data-value={m.priceChange24h}>{percent(m.priceChange24h)}</td><td class="number dim cap">{amount(m.volume24h)}</td>
            </tr>
          ))}</tbody>
        </table>
      ) : <p class="dim">None.</p>}
    </div>
  )
}

function Moved() {
  const all = now.value.movers.data
  const s = all[segment.value] ?? all[0]
  if (!s) return null
  return (
    <section aria-labelledby="moved">
      <h2 id="moved">Most moved in 24 hours</h2>
      <div class="frames" role="group" aria-label="Ranks">
        {all.map((of, i) => <button key={of.rankRange} type="button" class="chip" aria-pressed={of === s} onClick={() => (segment.value = i)}>{of.rankRange}</button>)}
      </div>
      <div class="halves">
        <Movers name={`Rose: ${count(s.totalGainers)}`} list={s.gainers} />
        <Movers name={`Fell: ${count(s.totalLosers)}`} list={s.losers} />
      </div>
    </section>
  )
}

function Mood() {
  return (
    <section aria-labelledby="mood">
      <h2 id="mood">Sentiment</h2>
      <p class="dim">How many coins rose and fell within 24 hours.</p>
      <dl class="bars">{now.value.sentiment.data.map((s) => (
        <div key={s.rankRange} class="mood">
          <dt>Ranks {s.rankRange}</dt>
          <dd>
            <svg class="split" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="rose" x="0" width={s.total ? (s.positive / s.total) * 100 : 0} height="8" />
              <rect class="fell" x={s.total ? 100 - (s.negative / s.total) * 100 : 100} width={s.total ? (s.negative / s.total) * 100 : 0} height="8" />
            </svg>
            <span><b class="up">{count(s.positive)}</b> rose, <b class="down">{count(s.negative)}</b> fell: {s.classification} <span class="dim">median {percent(s.medianChange24h)}</span></span>
          </dd>
        </div>
      ))}</dl>
    </section>
  )
}

function FearGreed() {
  const f = now.value.fearGreed
  if (!f) return null
  const d = path(f.history.map((p) => p.value))
  return (
    <section aria-labelledby="fear">
      <h2 id="fear">Fear and greed</h2>
      <p class="quote"><b class="now fear" data-value={f.value}>{count(f.value)}</b> <span>{plain(f.classification)}</span> <span class="dim">of 100, {f.source === "computed" ? "our own index" : "published by " + plain(f.source)}, {f.updatedAt.slice(0, 10)}</span></p>
      {d ? <svg class="line wide-line" viewBox="0 0 120 32" preserveAspectRatio="none" role="img" aria-label={`The last ${f.history.length} days`}><path d={d} /></svg> : null}
      {f.computed ? (
        <>
          <h3>Our own index: {count(f.computed.value)}, {plain(f.computed.classification)}; the mean of</h3>
          <dl class="bars">{Object.entries(f.computed.components).map(([name, value]) => (
            <div key={name}><dt>{plain(name).replaceAll("_", " ")}</dt><dd><meter min={0} max={100} value={value} aria-label={plain(name)} /> {value.toFixed(0)}</dd></div>
          ))}</dl>
        </>
      ) : null}
      {f.attribution ? <p class="dim small">{plain(f.attribution)}</p> : null}
    </section>
  )
}

const lenderOrder = order("")
const stakerOrder = order("")

const lenderColumns: Column<Lender>[] = [
  { key: "name", name: "Protocol", sort: (l) => l.name.toLowerCase(), cell: (l) => plain(l.name) },
  { key: "tvl", name: "Locked", class: "number", sort: (l) => l.tvl, cell: (l) => amount(l.tvl) },
  { key: "week", name: "7 d", class: "number", sort: (l) => l.change7d, cell: (l) => <span class={sign(l.change7d)}>{percent(l.change7d)}</span> },
  { key: "supply", name: "Pays", class: "number", sort: (l) => l.supplyApy, cell: (l) => rate(l.supplyApy) },
  { key: "borrow", name: "Asks", class: "number", sort: (l) => l.borrowApy, cell: (l) => rate(l.borrowApy) },
  { key: "used", name: "Lent out", class: "number dim", title: "Borrowed of what is supplied", sort: (l) => l.utilization, cell: (l) => rate(l.utilization) },
]

const stakerColumns: Column<Staker>[] = [
  { key: "name", name: "Protocol", sort: (s) => s.name.toLowerCase(), cell: (s) => plain(s.name) },
  { key: "tvl", name: "Staked", class: "number", sort: (s) => s.tvl, cell: (s) => amount(s.tvl) },
  { key: "apy", name: "Pays", class: "number", sort: (s) => s.apy, cell: (s) => rate(s.apy) },
  { key: "share", name: "Share", class: "number dim", sort: (s) => s.marketShare, cell: (s) => rate(s.marketShare) },
]

function DefiSection() {
  const d = defi.value
  if (!d) return <section><h2>DeFi</h2><p class="dim">No source has reported it yet.</p></section>
  return (
    <section aria-labelledby="defi">
      <h2 id="defi">DeFi</h2>
      <dl class="strip">
        <div><dt>Locked</dt><dd class="locked" data-value={d.totalTvl}>{amount(d.totalTvl)} <span class="dim">{count(d.protocolCount)} protocols</span></dd></div>
        <div><dt>Lending</dt><dd>{amount(d.lendingTvl)} <span class="dim">pays {rate(d.lendingApy)}</span></dd></div>
        <div><dt>Borrowed</dt><dd>{amount(d.borrowingTvl)} <span class="dim">at {rate(d.borrowApy)}</span></dd></div>
        <div><dt>Liquid staking</dt><dd>{amount(d.stakingTvl)} <span class="dim">pays {rate(d.stakingApy)}</span></dd></div>
      </dl>
      <div class="halves">
        {lenders.value.length ? <div><h3>Largest lenders</h3><Table name="Largest lenders" columns={lenderColumns} rows={lenders.value} id={(l) => l.slug} by={lenderOrder} empty="" /></div> : null}
        {stakers.value.length ? <div><h3>Largest stakers</h3><Table name="Largest stakers" columns={stakerColumns} rows={stakers.value} id={(s) => s.slug} by={stakerOrder} empty="" /></div> : null}
      </div>
    </section>
  )
}

function Page() {
  return (
    <>
      {fault.value ? <p class="fault" role="alert">{fault.value}</p> : null}
      <Strip />
      <Moved />
      <div class="halves"><Mood /><FearGreed /></div>
      <Dominance />
      <DefiSection />
    </>
  )
}

mount(<Page />)
// The head of the page shows the log's time; no price is needed here.
new Stream({ prices: () => undefined }, ["bitcoin"]).start()
every(30_000, async () => {
  try {
    const answer = await get<{ data: Summary }>("/api/v1/global-stats/summary")
    batch(() => {
      now.value = answer.data
      fault.value = ""
    })
  } catch (e) {
    fault.value = e instanceof Error ? e.message : String(e)
    throw e
  }
})
every(60_000, async () => {
  defi.value = (await get<{ data: Defi }>("/api/v1/global-stats/defi")).data
  lenders.value = (await get<{ data: { topProtocols: Lender[] } }>("/api/v1/global-stats/defi/lending")).data.topProtocols
  stakers.value = (await get<{ data: { topProtocols: Staker[] } }>("/api/v1/global-stats/defi/staking")).data.topProtocols
})
