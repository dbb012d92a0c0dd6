// Runs ../../cases.json: node cases.mjs PACKAGE URL KEY, PACKAGE being the built index.js. Prints what does not hold.
import { readFile } from "node:fs/promises"
import { pathToFileURL } from "node:url"

const [built, url, key] = process.argv.slice(2)
const marketlog = await import(pathToFileURL(built).href)
const { cases } = JSON.parse(await readFile(new URL("../../cases.json", import.meta.url), "utf8"))

const valueOf = (value) => (value?.ago === undefined ? value : new Date(Date.now() - value.ago * 1000))
const at = (answer, place) => place.split(".").filter(Boolean).reduce((a, step) => a?.[step], answer)

async function call(client, c) {
  const asked = Object.fromEntries(Object.entries(c.with).map(([name, value]) => [name, valueOf(value)]))
  switch (c.call) {
    case "sql":
      return client.sql(asked.query, asked.parameters)
    case "sqlFile":
      return client.sqlFile(asked.query, asked.parameters, asked.format)
    case "stream": {
      const stream = client.stream(asked)
      const taken = []
      for await (const one of c.messages ? stream.messages() : stream) if (taken.push(one) === c.take) break
      return taken
    }
    case "pages": {
      const rows = []
      for await (const row of client["iter" + c.of.replace(/^(list|search)/, "")](asked)) rows.push(row)
      return rows
    }
    default:
      return client[c.call](asked)
  }
}

function holds(got, want) {
  if (want?.above !== undefined) return got > want.above
  if (want?.atLeast !== undefined) return got?.length >= want.atLeast
  if (want?.begins !== undefined) return Buffer.from(got).toString("hex").startsWith(want.begins)
  return got === want
}

function faults(c, answer) {
  const found = []
  if (c.fails) {
    const { kind, ...wanted } = c.fails
    if (!(answer instanceof marketlog[kind])) return [`got ${answer}, want ${kind}`]
    for (const [name, want] of Object.entries(wanted)) if (answer[name] !== want) found.push(`${name} of the error is ${answer[name]}, want ${want}`)
    return found
  }
  if (answer instanceof Error) return [String(answer)]
  for (const [place, want] of Object.entries(c.holds)) {
    const got = at(answer, place)
    if (!holds(got, want)) found.push(`${place || "the answer"} is ${String(JSON.stringify(got)).slice(0, 200)}, want ${JSON.stringify(want)}`)
  }
  if (c.distinct && new Set(answer.map((row) => row[c.distinct])).size !== answer.length) found.push(`${c.distinct} comes twice`)
  return found
}

let found = []
for (const c of cases) {
  const client = new marketlog.Client({ url, key: c.key ?? key })
  const caught = async () => {
    try {
      return await call(client, c)
    } catch (e) {
      if (e instanceof marketlog.MarketlogError) return e
      throw e
    }
  }
  const answers = await Promise.all(Array.from({ length: c.atOnce ?? 1 }, caught))
  found = found.concat(answers.flatMap((answer) => faults(c, answer)).map((fault) => `${c.name}: ${fault}`))
}
// What types refuse, and plain JavaScript does not: arguments that there are not.
const anybody = new marketlog.Client({ url, key })
for (const [asked, want] of [
  [() => anybody.getChart({ symbol: "BTC" }), "GET /api/v1/charts/{coinId}: coinId is missing, symbol is not an argument; its arguments are coinId, timeframe, "],
  [() => anybody.getChart({ coinId: "BTC", asof: "2026-01-01" }), "asof is not an argument; its arguments are coinId, timeframe, format, asOf, "],
  [() => anybody.stream({ symbol: "BTC" }), "stream: symbol is not an argument; its arguments are symbols, "],
  [() => anybody.getChart({ coinId: ".." }), 'coinId is "..", which names nothing'],
]) {
  let got = ""
  try {
    await asked()
  } catch (e) {
    got = e instanceof TypeError ? e.message : `no TypeError: ${e}`
  }
  if (!got.includes(want)) found.push(`${asked}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
console.log(found.join("\n") || `${cases.length} cases hold`)
process.exit(found.length ? 1 : 0)
