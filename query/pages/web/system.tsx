// How the process is doing: each venue and source, and how far each stage that a tick passes is behind.
import { signal } from "@preact/signals"
import { data, every, get } from "./lib/api"
import { age, count, plain } from "./lib/format"
import { mount } from "./lib/live"
import { Stream } from "./lib/stream"

interface Venue {
  slug: string
  state: "up" | "quiet" | "down"
  connections: number
  markets: number
  eventsPerSecond?: number
  lastEventAgeSeconds: number
  gaps: Record<string, number>
  openGaps: number
  missed: number
  refused: Record<string, number>
}

interface Source {
  slug: string
  state: "up" | "down"
  lastAnswerAgeSeconds: number
  requests: number
  failures: number
  written: number
  refused: Record<string, number>
}

interface Stage {
  kind: "fold" | "table"
  name: string
  topic: string
  lagSeconds: number
  lagRecords: number
}

interface Answer {
  data: { venues: Venue[]; sources: Source[]; path: Stage[] }
}

const now = signal(data<{ system: Answer }>().system.data)
const fault = signal("")

const by = (counts: Record<string, number>) => Object.entries(counts).map(([reason, n]) => `${count(n)} ${plain(reason).replaceAll("_", " ")}`).join(", ")

function State({ of }: { of: string }) {
  return <span class={"state " + of}><i class="dot" />{of}</span>
}

// behind is how a lag looks: a second or two is a batch, more is late.
const behind = (s: Stage) => (s.lagSeconds < 5 ? "near" : s.lagSeconds < 60 ? "late" : "far")

function Stages({ kind, name }: { kind: Stage["kind"]; name: string }) {
  const stages = now.value.path.filter((s) => s.kind === kind)
  if (!stages.length) return null
  return (
    <>
      <h3>{name}</h3>
      <ol class="stages">
        {stages.map((s) => (
          <li key={s.name + s.topic} class={"stage " + behind(s)} title={`${count(s.lagRecords)} records to read`}>
            <b>{s.name}</b>
            {s.name === s.topic ? null : <span class="dim">{s.topic}</span>}
            <span class="lag">{s.lagSeconds === 0 && s.lagRecords === 0 ? "at the end" : age(s.lagSeconds * 1000) + " behind"}</span>
          </li>
        ))}
      </ol>
    </>
  )
}

function Venues() {
  const { venues } = now.value
  if (!venues.length) return <p class="dim">This process reads no venue.</p>
  return (
    <div class="wide" tabindex={0} role="region" aria-labelledby="venues">
      <table class="plain states">
        <thead><tr><th scope="col">Venue</th><th scope="col">State</th><th scope="col" class="number">Events/s</th><th scope="col" class="number">Last heard</th><th scope="col" class="number">Markets</th><th scope="col" class="number">Connections</th><th scope="col">Gaps</th><th scope="col">Refused</th></tr></thead>
        <tbody>{venues.map((v) => (
          <tr key={v.slug} data-venue={v.slug} data-state={v.state}>
            <th scope="row">{plain(v.slug)}</th>
            <td><State of={v.state} /></td>
            <td class="number rate">{v.eventsPerSecond === undefined ? "–" : v.eventsPerSecond.toFixed(1)}</td>
            <td class="number">{age(v.lastEventAgeSeconds * 1000)}</td>
            <td class="number dim">{count(v.markets)}</td>
            <td class="number dim">{count(v.connections)}</td>
            <td class="dim">{by(v.gaps)}{v.openGaps ? <b class="down"> {count(v.openGaps)} open</b> : null}</td>
            <td class="dim">{by(v.refused)}</td>
          </tr>
        ))}</tbody>
      </table>
    </div>
  )
}

function Sources() {
  const { sources } = now.value
  if (!sources.length) return null
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Polled sources <span class="dim">{count(sources.length)}</span></h2>
      <div class="wide" tabindex={0} role="region" aria-labelledby="sources">
        <table class="plain states">
          <thead><tr><th scope="col">Source</th><th scope="col">State</th><th scope="col" class="number">Last answer</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Rows new or changed</th><th scope="col">Refused</th></tr></thead>
          <tbody>{sources.map((s) => (
            <tr key={s.slug}>
              <th scope="row">{plain(s.slug)}</th>
              <td><State of={s.state} /></td>
              <td class="number">{age(s.lastAnswerAgeSeconds * 1000)}</td>
              <td class="number dim">{count(s.requests)}</td>
              <td class={s.failures ? "number" : "number dim"}>{count(s.failures)}</td>
              <td class="number dim">{count(s.written)}</td>
              <td class="dim">{by(s.refused)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </section>
  )
}

function Page() {
  return (
    <>
      {fault.value ? <p class="fault" role="alert">{fault.value}</p> : null}
      <section aria-labelledby="path">
        <h2 id="path">Path of a tick</h2>
        <p class="dim">From a venue into the log, through the folds, into the tables; each stage with how far it is behind what it reads.</p>
        <Stages kind="fold" name="Folds" />
        <Stages kind="table" name="Tables" />
      </section>
      <section>
        <h2 id="venues">Venues <span class="dim">{count(now.value.venues.length)}</span></h2>
        <Venues />
      </section>
      <Sources />
      <section class="try" aria-labelledby="try">
        <h2 id="try">Try it</h2>
        <p>On the simulator a venue misbehaves on demand; it is seen here within seconds, and its price leaves the medians after 120 seconds:</p>
        <p><code>marketlog sim faults --venue kraken --fault disconnect --for 180s</code></p>
      </section>
    </>
  )
}

mount(<Page />)
// The head of the page shows the log's time; no price is needed here.
new Stream({ prices: () => undefined }, ["bitcoin"]).start()
every(2000, async () => {
  try {
    now.value = (await get<Answer>("/api/v1/system")).data
    fault.value = ""
  } catch (e) {
    fault.value = e instanceof Error ? e.message : String(e)
    throw e
  }
})
