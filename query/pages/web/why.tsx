// What a price is made from: each venue's own beside the median, what was left out and why, and where all of it lies in the log.
import type { Signal } from "@preact/signals"
import type { Explanation, Input } from "./lib/api"
import { age, bps, clock, local, plain, price, usd } from "./lib/format"

// reasons say why an input is not used, in more than a word.
const reasons: Record<string, string> = {
  outlier: "too far off the first median",
  no_rate: "its quote asset has no exchange rate",
  crossed: "its bid is above its ask, and it has no fresh trade",
  silent: "not heard for longer than its own pace allows",
  excluded: "an operator took it out: see /api/v1/corrections",
  wide: "its bid and ask are too far apart, and it has no fresh trade",
}

function place(x: number, low: number, high: number): number {
  return high > low ? Math.min(100, Math.max(0, ((x - low) / (high - low)) * 100)) : 50
}

// Dots shows the venues around the median; those left out are hollow, at the edge where they are farther away.
export function Dots({ of }: { of: Explanation }) {
  const used = of.inputs.filter((i) => i.accepted && i.priceUsd !== undefined)
  const out = of.inputs.filter((i) => !i.accepted && i.priceUsd !== undefined && i.reason !== "other_market")
  const prices = [...used.map((i) => i.priceUsd as number), ...of.confidenceInterval]
  let low = Math.min(...prices), high = Math.max(...prices)
  const margin = (high - low) * 0.06 || Math.abs(of.price) * 1e-4
  low -= margin
  high += margin
  const from = place(of.confidenceInterval[0], low, high)
  const to = place(of.confidenceInterval[1], low, high)
  const dot = (i: Input, n: number) => {
    const p = i.priceUsd as number
    return (
      <i key={i.provider + i.venueSymbol} class={i.accepted ? "venue" : "venue out"} title={`${plain(i.provider)} ${usd(p)}`}
        style={{ left: place(p, low, high) + "%", top: 12 + (n % 4) * 17 + "px" }} />
    )
  }
  return (
    <figure class="dots" role="img" aria-label={`${used.length} venues from ${usd(Math.min(...used.map((i) => i.priceUsd as number)))} to ${usd(Math.max(...used.map((i) => i.priceUsd as number)))}, the median ${usd(of.price)}`}>
      <div class="field">
        <i class="band" style={{ left: from + "%", width: to - from + "%" }} />
        <i class="median" style={{ left: place(of.price, low, high) + "%" }} />
        {used.map(dot)}
        {out.map(dot)}
      </div>
      <div class="ends" aria-hidden="true"><span>{usd(low)}</span><span class="middle">{usd(of.price)}</span><span>{usd(high)}</span></div>
    </figure>
  )
}

function InputRow({ of: i, median }: { of: Input; median: number }) {
  const off = i.priceUsd === undefined ? undefined : (i.priceUsd / median - 1) * 1e4
  return (
    <tr class={i.accepted ? "" : "left-out"}>
      <th scope="row">{plain(i.provider)}</th>
      <td class="dim">{plain(i.venueSymbol)}</td>
      <td class="number there">{price(i.raw)}</td>
      <td class="number rate dim">{i.rateUsed === undefined ? "–" : i.rateUsed === 1 ? "1" : i.rateUsed.toPrecision(7)}</td>
      <td class="number">{usd(i.priceUsd)}</td>
      <td class="number">{i.accepted ? bps(off) : <span class="reason" title={reasons[i.reason ?? ""]}>{plain(i.reason ?? "left out").replaceAll("_", " ")}</span>}</td>
      <td class="number dim">{age(i.ageMs)}</td>
      <td class="offset dim">{plain(i.offset.topic)}/{i.offset.partition}@{i.offset.offset}</td>
    </tr>
  )
}

export function Inputs({ of }: { of: Explanation }) {
  const mine = of.inputs.filter((i) => i.accepted || i.reason !== "other_market")
  const others = of.inputs.length - mine.length
  mine.sort((a, b) => Number(b.accepted) - Number(a.accepted) || (a.priceUsd ?? 0) - (b.priceUsd ?? 0))
  return (
    <>
      <div class="wide" tabindex={0} role="region" aria-label="What each venue sent">
        <table class="plain inputs">
          <thead><tr><th scope="col">Venue</th><th scope="col">Market</th><th scope="col" class="number there">Price there</th><th scope="col" class="number rate">× rate</th><th scope="col" class="number">USD</th><th scope="col" class="number">Off, bps</th><th scope="col" class="number">Age</th><th scope="col" class="offset">In the log</th></tr></thead>
          <tbody>{mine.map((i) => <InputRow key={i.provider + i.venueSymbol} of={i} median={of.price} />)}</tbody>
        </table>
      </div>
      {others ? <p class="dim small">{others} further markets of these venues are listed, never counted: one venue, one vote.</p> : null}
    </>
  )
}

export function Summary({ of }: { of: Explanation }) {
  const at = Date.parse(of.timestamp)
  const out = of.rejected.length
  return (
    <p class="summary">
      Median of <b>{of.accepted.length}</b> venues{out ? <>, <b>{out}</b> left out ({of.rejected.map(plain).join(", ")})</> : ", none left out"} · ± {bps((of.confidence / of.price) * 1e4)} bps · score {of.score.toFixed(3)} · second <time title={local(at)}>{clock(at)}</time> UTC ·
      folded again from the log: {of.reproduced ? <b class="up">the same</b> : <b class="down">{of.recomputed === undefined ? "different" : usd(of.recomputed)}</b>}
    </p>
  )
}

export function Why({ of }: { of: Signal<Explanation | undefined> }) {
  const x = of.value
  if (!x) return null
  return (
    <section class="why" aria-labelledby="why">
      <h2 id="why">Why this number</h2>
      <Summary of={x} />
      <Dots of={x} />
      <Inputs of={x} />
    </section>
  )
}
