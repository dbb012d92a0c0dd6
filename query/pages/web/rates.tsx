// What coins yield and cost: of all coins by category, or of one by provider.
import { signal } from "@preact/signals"
import { data, every, get } from "./lib/api"
import { ago, amount, count, plain, rate } from "./lib/format"
import { mount } from "./lib/live"
import { Stream } from "./lib/stream"
import { order, Table, type Column } from "./lib/table"

type Category = "lending" | "staking" | "borrowing" | "price"

interface Sum {
  symbol: string
  coinId: string
  category: Category
  minRate: number
  maxRate: number
  medianRate: number
  providerCount: number
  latestUpdate: string
}

interface Benchmark {
  median?: number
  tvlWeighted?: number
  providerCount: number
  provisional: boolean
  asOf: string
  cefi: { median?: number }
  defi: { median?: number }
}

interface Entry {
  id: string
  provider: string
  providerName?: string
  category: Category
  rate: number
  lastUpdated: string
  metadata?: {
    source?: string
    chain?: string
    name?: string
    term?: string
    tvlUsd?: number
    rewardApy?: number
    promo?: boolean
    raw?: string
    rawUnit?: string
    compounding?: string
  }
}

interface Variant {
  variantId: string
  status: string
  rate: number
  maxRate: number
  term?: string
  minDeposit?: number
  promo: boolean
  verifiedAt: string
  source: string
  name?: string
}

interface Product {
  productId: string
  provider: string
  providerName?: string
  segment: string
  category: string
  status: string
  variants: Variant[]
}

interface Data {
  summary?: Sum[]
  benchmark?: { data: Benchmark }
  symbol?: string
  coinId?: string
  rates?: Entry[]
  earn?: { products: Product[] }
}

const given = data<Data>()
const fault = signal("")

const number = (n: number | undefined) => <span class={n !== undefined && n < 0 ? "down" : undefined} data-value={n}>{rate(n)}</span>
const when = (iso: string) => <time class="dim" dateTime={iso} title={iso}>{ago(iso)}</time>

// What of all coins.

interface CoinRow {
  id: string
  symbol: string
  lending?: Sum
  staking?: Sum
  borrowing?: Sum
}

function byCoin(sums: Sum[]): CoinRow[] {
  const rows = new Map<string, CoinRow>()
  for (const s of sums) {
    if (s.category === "price") continue
    const row = rows.get(s.coinId) ?? { id: s.coinId, symbol: plain(s.symbol) }
    row[s.category] = s
    rows.set(s.coinId, row)
  }
  return [...rows.values()]
}

const coins = signal(byCoin(given.summary ?? []))
const benchmark = signal(given.benchmark?.data)
const search = signal("")
const coinOrder = order("")

const coinColumns: Column<CoinRow>[] = [
  { key: "coin", name: "Coin", sort: (r) => r.symbol, cell: (r) => <a href={"/rates/" + encodeURIComponent(r.id)}><b>{r.symbol}</b> <span class="dim">{plain(r.id)}</span></a> },
  { key: "lend", name: "Lending, best", class: "number", title: "The highest rate of any provider", sort: (r) => r.lending?.maxRate, cell: (r) => number(r.lending?.maxRate) },
  { key: "lendMedian", name: "Median", class: "number dim", sort: (r) => r.lending?.medianRate, cell: (r) => number(r.lending?.medianRate) },
  { key: "stake", name: "Staking, best", class: "number", title: "The highest rate of any provider", sort: (r) => r.staking?.maxRate, cell: (r) => number(r.staking?.maxRate) },
  { key: "stakeMedian", name: "Median", class: "number dim", sort: (r) => r.staking?.medianRate, cell: (r) => number(r.staking?.medianRate) },
  { key: "borrow", name: "Borrowing, from", class: "number", title: "The lowest rate of any provider; negative: the borrower is paid", sort: (r) => r.borrowing?.minRate, cell: (r) => number(r.borrowing?.minRate) },
  { key: "borrowMedian", name: "Median", class: "number dim", sort: (r) => r.borrowing?.medianRate, cell: (r) => number(r.borrowing?.medianRate) },
  {
    key: "providers", name: "Providers", class: "number dim", title: "That lend it, stake it, and ask for it",
    cell: (r) => [r.lending, r.staking, r.borrowing].map((s) => (s ? count(s.providerCount) : "–")).join(" / "),
  },
]

function Strip() {
  const b = benchmark.value
  if (!b || b.median === undefined) return null
  return (
    <dl class="strip">
      <div title="The median over providers of what flexible deposits of USD stablecoins earn"><dt>USD stablecoins, flexible</dt><dd class="benchmark" data-value={b.median}>{rate(b.median)} <span class="dim">{b.provisional ? "now" : "fixed " + b.asOf.slice(0, 10)}</span></dd></div>
      <div><dt>At exchanges</dt><dd>{rate(b.cefi.median)}</dd></div>
      <div><dt>At protocols</dt><dd>{rate(b.defi.median)}</dd></div>
      <div><dt>Weighted by TVL</dt><dd>{rate(b.tvlWeighted)} <span class="dim">{count(b.providerCount)} providers</span></dd></div>
    </dl>
  )
}

function All() {
  const words = search.value.trim().toLowerCase()
  const rows = words ? coins.value.filter((r) => r.symbol.toLowerCase().includes(words) || r.id.includes(words)) : coins.value
  return (
    <>
      <Strip />
      <div class="tools">
        <label class="search">
          <span class="hidden">Search coins</span>
          <input type="search" placeholder="Search coins" value={search.value} autocomplete="off" spellcheck={false} onInput={(e) => (search.value = e.currentTarget.value)}
            onKeyDown={(e) => {
              const first = rows[0]
              if (e.key === "Enter" && first) location.assign("/rates/" + encodeURIComponent(first.id))
              if (e.key === "Escape") search.value = ""
            }} />
        </label>
      </div>
      <Table name="Rates by coin" class="rates" columns={coinColumns} rows={rows} id={(r) => r.id} by={coinOrder} empty={words ? "No coin fits." : "No source has reported a rate yet."} />
    </>
  )
}

// What of one coin.

const entries = signal(given.rates ?? [])
const only = signal<Category | "">("")
const entryOrder = order("")

const entryColumns: Column<Entry>[] = [
  { key: "provider", name: "Provider", sort: (e) => (e.providerName ?? e.provider).toLowerCase(), cell: (e) => <>{plain(e.providerName ?? e.provider)}{e.metadata?.promo ? <span class="stale" title="Offered for a limited time or to some users">promo</span> : null}</> },
  { key: "category", name: "Category", sort: (e) => e.category, cell: (e) => e.category },
  { key: "rate", name: "Rate (APY)", class: "number", sort: (e) => e.rate, cell: (e) => <b>{number(e.rate)}</b> },
  { key: "reported", name: "As reported", class: "reported-as", title: "The number as the source reported it, its unit, and how an APR was compounded", cell: (e) => reported(e) },
  { key: "source", name: "Source", class: "dim", sort: (e) => e.metadata?.source, cell: (e) => plain(e.metadata?.source ?? "") },
  { key: "term", name: "Term", class: "dim", sort: (e) => e.metadata?.term, cell: (e) => plain(e.metadata?.term ?? "") },
  { key: "where", name: "Where", class: "dim where", sort: (e) => e.metadata?.chain ?? e.metadata?.name, cell: (e) => [e.metadata?.chain, e.metadata?.name].filter(Boolean).map((text) => plain(text ?? "")).join(" · ") },
  { key: "tvl", name: "Amount", class: "number dim", title: "Supplied or staked; for borrowing, the debt", sort: (e) => e.metadata?.tvlUsd, cell: (e) => amount(e.metadata?.tvlUsd) },
  { key: "reward", name: "Of it rewards", class: "number dim", title: "The part paid in other tokens", sort: (e) => e.metadata?.rewardApy, cell: (e) => rate(e.metadata?.rewardApy) },
  { key: "reported-at", name: "Reported", class: "number", sort: (e) => e.lastUpdated, cell: (e) => when(e.lastUpdated) },
]

function reported(e: Entry): string {
  const m = e.metadata
  if (!m?.raw) return "–"
  return plain(m.raw).slice(0, 10) + " " + plain(m.rawUnit ?? "").replaceAll("_", " ") + (m.compounding ? ", " + plain(m.compounding) : "")
}

interface Offer extends Variant {
  product: Product
}

const offers = (given.earn?.products ?? []).flatMap((product) => product.variants.map((v): Offer => ({ ...v, product })))
const offerOrder = order("")

const offerColumns: Column<Offer>[] = [
  { key: "provider", name: "Provider", sort: (o) => o.product.provider, cell: (o) => <>{plain(o.product.providerName ?? o.product.provider)}{o.promo ? <span class="stale">promo</span> : null}</> },
  { key: "kind", name: "Product", class: "dim", sort: (o) => o.product.category, cell: (o) => `${o.product.category}${o.name ? " · " + plain(o.name) : ""}` },
  { key: "rate", name: "Rate (APY)", class: "number", sort: (o) => o.rate, cell: (o) => <b>{number(o.rate)}</b> },
  { key: "max", name: "Up to", class: "number dim", title: "The highest of its tiers", sort: (o) => o.maxRate, cell: (o) => rate(o.maxRate) },
  { key: "term", name: "Term", class: "dim", sort: (o) => o.term, cell: (o) => plain(o.term ?? "") },
  { key: "least", name: "At least", class: "number dim", title: "The smallest deposit, in units of the coin", sort: (o) => o.minDeposit, cell: (o) => (o.minDeposit === undefined ? "–" : count(o.minDeposit)) },
  { key: "status", name: "Status", sort: (o) => o.status, cell: (o) => o.status },
  { key: "source", name: "Source", class: "dim", sort: (o) => o.source, cell: (o) => plain(o.source) },
  { key: "verified", name: "Verified", class: "number", sort: (o) => o.verifiedAt, cell: (o) => when(o.verifiedAt) },
]

function One() {
  const all = entries.value
  const kinds = [...new Set(all.map((e) => e.category))]
  const rows = only.value ? all.filter((e) => e.category === only.value) : all
  return (
    <>
      <div class="frames" role="group" aria-label="Category">
        <button type="button" class="chip" aria-pressed={!only.value} onClick={() => (only.value = "")}>All {count(all.length)}</button>
        {kinds.map((k) => <button key={k} type="button" class="chip" aria-pressed={only.value === k} onClick={() => (only.value = k)}>{k}</button>)}
      </div>
      <Table name="Rates by provider" class="entries" columns={entryColumns} rows={rows} id={(e) => e.id} by={entryOrder} empty="No source reports a rate of this coin." />
      {offers.length ? (
        <section aria-labelledby="earn">
          <h2 id="earn">Earn products <span class="dim">{count(offers.length)}</span></h2>
          <Table name="Earn products" columns={offerColumns} rows={offers} id={(o) => o.variantId} by={offerOrder} empty="" />
        </section>
      ) : null}
    </>
  )
}

function Page() {
  return (
    <>
      {fault.value ? <p class="fault" role="alert">{fault.value}</p> : null}
      {given.coinId ? <One /> : <All />}
    </>
  )
}

async function refresh(): Promise<void> {
  try {
    if (given.coinId) {
      entries.value = (await get<{ data: { rates: Entry[] } }>("/api/v1/rates/" + encodeURIComponent(given.coinId))).data.rates.filter((e) => e.category !== "price")
    } else {
      coins.value = byCoin((await get<{ data: { summary: Sum[] } }>("/api/v1/rates/summary")).data.summary)
    }
    fault.value = ""
  } catch (e) {
    fault.value = e instanceof Error ? e.message : String(e)
    throw e
  }
}

mount(<Page />)
// The head of the page shows the log's time; no price is needed here.
new Stream({ prices: () => undefined }, ["bitcoin"]).start()
every(30_000, refresh)
if (!given.coinId) every(60_000, async () => (benchmark.value = (await get<{ data: Benchmark }>("/api/v1/earn/benchmark")).data))
