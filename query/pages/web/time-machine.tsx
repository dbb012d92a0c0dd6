// What did you say then? The answer of a past instant, with what it was made from, asked from the log.
import { batch, signal, type Signal } from "@preact/signals"
import { get, type Explanation } from "./lib/api"
import { clock, day, local, usd } from "./lib/format"
import { Dots, Inputs, Summary } from "./why"

const back = 3600 // seconds that the slider covers
const settle = 180 // milliseconds that the slider has to rest

// then is the instant that is looked at, 0: none; origin is the present that the slider counts back from.
const then = signal(0)
const origin = signal(0)
const explained = signal<Explanation | undefined>(undefined)
const fault = signal("")

let timer: ReturnType<typeof setTimeout> | undefined
let asking: AbortController | undefined

async function ask(id: string, at: number): Promise<void> {
  asking?.abort()
  const mine = (asking = new AbortController())
  try {
    const answer = await get<{ data: Explanation }>(`/api/v1/prices/${encodeURIComponent(id)}/explain?asOf=${new Date(at).toISOString()}`, mine.signal)
    batch(() => {
      explained.value = answer.data
      fault.value = ""
    })
  } catch (e) {
    if (mine.signal.aborted) return
    batch(() => {
      explained.value = undefined
      fault.value = e instanceof Error ? e.message : String(e)
    })
  }
}

function look(id: string, at: number, wait: number): void {
  then.value = at
  clearTimeout(timer)
  timer = setTimeout(() => void ask(id, at), wait)
}

function leave(): void {
  clearTimeout(timer)
  asking?.abort()
  batch(() => {
    then.value = 0
    explained.value = undefined
    fault.value = ""
  })
}

export function TimeMachine({ id, present }: { id: string; present: Signal<Explanation | undefined> }) {
  const at = then.value
  const newest = present.value ? Date.parse(present.value.timestamp) : Date.now()
  const from = at ? origin.value : newest
  const past = explained.value
  const ago = at ? Math.round((from - at) / 1000) : 0
  return (
    <section class="machine" aria-labelledby="machine">
      <h2 id="machine">What did you say then?</h2>
      <p class="dim">Every published price is in the log with what it was made from. Choose an instant, and it is asked again.</p>
      <div class="controls">
        <label class="slider">
          <span class="hidden">Seconds back</span>
          <input type="range" min={-back} max={0} step={1} value={-Math.min(back, ago)} aria-valuetext={at ? `${clock(at)} UTC, ${ago} seconds ago` : "now"}
            onInput={(e) => {
              const seconds = -Number(e.currentTarget.value)
              if (!at) origin.value = newest
              if (seconds === 0) leave()
              else look(id, origin.value - seconds * 1000, settle)
            }} />
          <span class="scale" aria-hidden="true"><span>an hour ago</span><span>30 min</span><span>now</span></span>
        </label>
        <form onSubmit={(e) => {
          e.preventDefault()
          const text = new FormData(e.currentTarget).get("instant")
          const chosen = typeof text === "string" ? Date.parse(text + "Z") : NaN
          if (!Number.isFinite(chosen)) return
          if (!at) origin.value = newest
          look(id, chosen, 0)
        }}>
          <label>Instant, UTC <input type="datetime-local" name="instant" step={1} required value={new Date(at || newest).toISOString().slice(0, 19)} /></label>
          <button type="submit">Ask</button>
          {at ? <button type="button" class="quiet" onClick={leave}>Back to now</button> : null}
        </form>
      </div>
      <div aria-live="polite">
        {at ? (
          <p class="answered">At <time title={local(at)}>{day(at)} {clock(at)}</time> UTC the answer was {past ? <b class="then" data-value={past.price}>{usd(past.price)}</b> : fault.value ? <span class="down">not served: {fault.value}</span> : "…"}</p>
        ) : null}
      </div>
      {at && past ? <div class="then"><Summary of={past} /><Dots of={past} /><Inputs of={past} /></div> : null}
    </section>
  )
}
