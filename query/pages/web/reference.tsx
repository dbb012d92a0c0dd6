// Every operation of the API: what it takes, and its answer to what is filled in, asked with the session of the page.
import { signal, type Signal } from "@preact/signals"
import { data } from "./lib/api"
import { count } from "./lib/format"
import { mount } from "./lib/live"
import { Stream } from "./lib/stream"

interface Parameter {
  name: string
  in: string
  about?: string
  required?: boolean
  example?: string
  default?: string
  allowed?: unknown[]
}

interface Operation {
  id: string
  method: string
  path: string
  summary: string
  description?: string
  params: Parameter[]
  body?: string
  answer?: unknown
  samples?: { label: string; source: string }[]
  related: Related
}

// Related is where else what an operation answers is found.
interface Related {
  tool?: string
  views?: string[]
  channels?: string[]
  commands?: string[]
}

interface Group {
  name: string
  about: string
  operations: Operation[]
}

interface Answer {
  status: number
  ms: number
  text: string
  bytes: number
}

const { groups, session } = data<{ groups: Group[]; session: boolean }>()
const search = signal("")

// most is what is shown of an answer, in characters.
const most = 20_000

// endless answers last as long as their connection: there is nothing to show.
const endless = new Set(["getStream"])

class Trial {
  readonly values: Map<string, Signal<string>>
  readonly body: Signal<string>
  readonly answer = signal<Answer | undefined>(undefined)
  readonly asking = signal(false)

  constructor(readonly of: Operation) {
    this.values = new Map(of.params.map((p) => [p.name, signal(p.required ? (p.example ?? "") : "")]))
    this.body = signal(of.body ?? "")
  }

  address(): string {
    let path = this.of.path
    const query = new URLSearchParams()
    for (const p of this.of.params) {
      const value = this.values.get(p.name)?.value ?? ""
      if (p.in === "path") path = path.replace(`{${p.name}}`, encodeURIComponent(value))
      else if (p.in === "query" && value !== "") query.set(p.name, value)
    }
    return path + (query.size ? "?" + query : "")
  }

  async send(): Promise<void> {
    this.asking.value = true
    const began = performance.now()
    try {
      const answer = await fetch(this.address(), {
        method: this.of.method, credentials: "same-origin", headers: { Accept: "application/json", ...(this.of.body ? { "Content-Type": "application/json" } : {}) },
        ...(this.of.body ? { body: this.body.value } : {}),
      })
      const raw = await answer.text()
      let text = raw
      try {
        text = JSON.stringify(JSON.parse(raw), null, 2)
      } catch {
        // no JSON: as it is
      }
      this.answer.value = { status: answer.status, ms: performance.now() - began, text, bytes: raw.length }
    } catch (e) {
      this.answer.value = { status: 0, ms: performance.now() - began, text: String(e), bytes: 0 }
    } finally {
      this.asking.value = false
    }
  }

  curl(): string {
    const url = location.origin + this.address()
    const sent = this.of.body ? ` -H "Content-Type: application/json" -d '${this.body.value.replaceAll(/\s*\n\s*/g, " ")}'` : ""
    return `curl -H "Authorization: Bearer $MARKETLOG_API_KEY"${sent} "${url}"`
  }
}

function Field({ of, value, id }: { of: Parameter; value: Signal<string>; id: string }) {
  const set = (e: { currentTarget: { value: string } }) => (value.value = e.currentTarget.value)
  return (
    <div class="param">
      <label for={id}><code>{of.name}</code>{of.required ? <span class="dim"> needed</span> : null}</label>
      {of.allowed?.length ? (
        <select id={id} value={value.value} onChange={set}><option value="">{of.default ? `(${of.default})` : ""}</option>{of.allowed.map((a) => <option key={String(a)} value={String(a)}>{String(a)}</option>)}</select>
      ) : <input id={id} value={value.value} placeholder={of.default ?? of.example ?? ""} autocomplete="off" spellcheck={false} onInput={set} />}
      <span class="dim small">{of.about}</span>
    </div>
  )
}

function Shown({ of }: { of: Answer }) {
  return (
    <div class="answer" data-status={of.status}>
      <p class="stats"><b class={of.status === 200 ? "up" : "down"}>{of.status || "no answer"}</b> in {of.ms.toFixed(0)} ms, {count(of.bytes)} bytes</p>
      <pre class="wide" tabindex={0}><code>{of.text.slice(0, most)}{of.text.length > most ? "\n…" : ""}</code></pre>
    </div>
  )
}

const trials = new Map<string, Trial>()

function trialOf(o: Operation): Trial {
  let t = trials.get(o.id)
  if (!t) trials.set(o.id, (t = new Trial(o)))
  return t
}

function Try({ of }: { of: Operation }) {
  const t = trialOf(of)
  return (
    <form onSubmit={(e) => { e.preventDefault(); void t.send() }}>
      {of.params.filter((p) => p.in !== "header").map((p) => {
        const value = t.values.get(p.name)
        return value ? <Field key={p.name} of={p} value={value} id={`${of.id}-${p.name}`} /> : null
      })}
      {of.body ? <div class="param"><label for={of.id + "-body"}>Body</label><textarea id={of.id + "-body"} rows={4} spellcheck={false} value={t.body.value} onInput={(e) => (t.body.value = e.currentTarget.value)} /></div> : null}
      <pre class="wide curl" tabindex={0}><code>{t.curl()}</code></pre>
      {endless.has(of.id) ? <p class="dim">Its answer does not end: ask it in a terminal.</p> : <button class="chip go" disabled={t.asking.value}>Send</button>}
      {t.answer.value ? <Shown of={t.answer.value} /> : null}
    </form>
  )
}

// Elsewhere names the other ways to what an operation answers, each beside the guide to it.
function Elsewhere({ of }: { of: Related }) {
  const ways: [string, string, string[] | undefined][] = [
    ["MCP", "mcp", of.tool ? [of.tool] : undefined], ["SQL", "views", of.views], ["Stream", "stream", of.channels], ["Command", "commands", of.commands?.map((c) => "marketlog " + c)],
  ]
  const known = ways.filter(([, , names]) => names?.length)
  if (!known.length) return null
  return (
    <p class="dim small elsewhere">
      {known.map(([way, guide, names], i) => <span key={way}>{i ? " · " : null}<a href={"/docs/" + guide}>{way}</a> {names?.map((n, j) => <span key={n}>{j ? ", " : null}<code>{n}</code></span>)}</span>)}
    </p>
  )
}

// Examples show how an operation is asked with each client, and what it answered once, on a simulator.
function Examples({ of }: { of: Operation }) {
  const shown = (of.samples ?? []).map((s) => [s.label, s.source])
  if (of.answer !== undefined) shown.push(["An answer", JSON.stringify(of.answer, null, 2)])
  return (
    <div class="examples">
      {shown.map(([label, text]) => <details key={label}><summary>{label}</summary><pre class="wide" tabindex={0}><code>{text}</code></pre></details>)}
    </div>
  )
}

const opened = signal(new Set<string>(location.hash ? [location.hash.slice(1)] : []))

function Entry({ of }: { of: Operation }) {
  const open = opened.value.has(of.id)
  return (
    <details class="operation" id={of.id} open={open} onToggle={(e) => {
      const next = new Set(opened.peek())
      if (e.currentTarget.open) next.add(of.id)
      else next.delete(of.id)
      if (next.size !== opened.peek().size) opened.value = next
    }}>
      <summary><b class="method">{of.method}</b> <code>{of.path}</code> <span>{of.summary}</span></summary>
      {of.description ? <p>{of.description}</p> : null}
      <Elsewhere of={of.related} />
      {open ? <Examples of={of} /> : null}
      {open ? <Try of={of} /> : null}
    </details>
  )
}

function Page() {
  const words = search.value.trim().toLowerCase()
  const fits = (o: Operation) => !words || (o.path + " " + o.summary + " " + o.id).toLowerCase().includes(words)
  return (
    <>
      <div class="tools"><label class="search"><span class="hidden">Search operations</span><input type="search" placeholder="Search operations" value={search.value} autocomplete="off" spellcheck={false} onInput={(e) => (search.value = e.currentTarget.value)} /></label></div>
      {session ? null : <p class="dim">To send requests from here, <a href="/">sign in</a> first.</p>}
      {groups.map((g) => {
        const shown = g.operations.filter(fits)
        return shown.length ? <section key={g.name}><h2>{g.name}</h2><p class="dim">{g.about}</p>{shown.map((o) => <Entry key={o.id} of={o} />)}</section> : null
      })}
    </>
  )
}

mount(<Page />)
// The head of the page shows the log's time; no price is needed here. Without a session there is none.
if (session) new Stream({ prices: () => undefined }, ["bitcoin"]).start()
else document.getElementById("live")?.remove()
