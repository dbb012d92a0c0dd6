// Looks at the pages with a real browser: node browser.mjs, with one JSON object as argument. Faults and figures are lines of JSON on
// standard output; {"ask":…} asks whoever started it to do something and to answer with a line.
import { chromium } from "playwright-core"
import { readFile } from "node:fs/promises"
import { createInterface } from "node:readline"

const { base, key, hostile, mortal, executable, shots, pictures } = JSON.parse(process.argv[2])
const say = (line) => console.log(JSON.stringify(line))
const fault = (where, what) => say({ fault: `${where}: ${what}` })

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
async function ask(what) {
  say({ ask: what })
  return (await answers.next()).value
}

const axe = await readFile(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8")
const browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
const patience = 30_000

async function rest(path, at = base) {
  const answer = await fetch(at + path, { headers: { Authorization: "Bearer " + key } })
  return answer.json()
}

// watch notes all that a page must not do.
async function watch(context, where, origin) {
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const seen = { quiet: false }
  page.on("console", (m) => {
    if (!seen.quiet && (m.type() === "error" || m.type() === "warning")) fault(where, `the console says: ${m.text()}`)
  })
  page.on("pageerror", (e) => fault(where, `a script failed: ${e.message}`))
  page.on("request", (r) => {
    const url = new URL(r.url())
    if (!["data:", "blob:"].includes(url.protocol) && url.host !== new URL(origin).host) fault(where, `it asks another server: ${r.url()}`)
  })
  page.on("dialog", (d) => {
    fault(where, `a text became a script: ${d.message()}`)
    void d.dismiss()
  })
  await page.addInitScript(() => {
    window.violations = []
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`))
  })
  return { page, seen }
}

// look checks what every page must hold.
async function look(page, where) {
  for (const v of await page.evaluate(() => window.violations)) fault(where, `the policy was violated: ${v}`)
  const { wide, title, heads } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    title: document.title, heads: document.querySelectorAll("h1").length,
  }))
  if (wide > 0) fault(where, `it is ${wide} pixels wider than the screen`)
  if (!/^\S.* · Marketlog$/.test(title)) fault(where, `its title is ${JSON.stringify(title)}`)
  if (heads !== 1) fault(where, `it has ${heads} h1`)
}

async function accessible(page, where) {
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }))
  for (const v of violations) {
    if (v.impact === "serious" || v.impact === "critical") fault(where, `axe: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`)
  }
}

// live waits until the stream has brought a price.
async function live(page, where) {
  try {
    await page.waitForSelector("#live .going", { timeout: patience })
  } catch {
    fault(where, `the stream brings nothing: ${await page.textContent("#live")}`)
  }
}

// equals waits until the page shows a number that the API reported within these seconds, to the last digit.
async function equals(page, where, selector, path, pick) {
  const told = new Set()
  let shown
  for (const end = Date.now() + patience; Date.now() < end; ) {
    const body = await rest(path)
    if (!body.error) told.add(pick(body))
    shown = Number(await page.getAttribute(selector, "data-value"))
    if (told.has(shown)) return
    await page.waitForTimeout(150)
  }
  fault(where, `${selector} shows ${shown}, the API says ${[...told].slice(-5)}`)
}

const priceOf = (a) => a.data.aggregated.price

async function prices(page, where) {
  await live(page, where)
  for (const id of ["bitcoin", "tether"]) await equals(page, where, `tr[data-id="${id}"] .price`, `/api/v1/prices/${id}`, priceOf)
  const rows = await page.locator(".prices tbody tr").count()
  if (rows < 100) fault(where, `it has ${rows} rows`)
  await page.keyboard.press("/")
  await page.keyboard.type("ethereum")
  await page.waitForFunction(() => document.querySelectorAll(".prices tbody tr").length < 60)
  if (!(await page.locator('tr[data-id="ethereum"]').count())) fault(where, "the search does not find ethereum")
  await page.keyboard.press("Escape")
  await page.waitForFunction((n) => document.querySelectorAll(".prices tbody tr").length === n, rows)
  await page.locator(".prices thead .price button").click()
  const sorted = await page.locator(".prices tbody .price").evaluateAll((cells) => cells.slice(0, 5).map((c) => Number(c.dataset.value)))
  if (sorted.some((n, i) => i && n > sorted[i - 1] * 1.01)) fault(where, `by price the rows begin with ${sorted}`)
  await page.locator(".prices thead .coin button").click()
  await page.reload()
  await live(page, where)
}

async function coin(page, where) {
  await live(page, where)
  await equals(page, where, ".quote .now", "/api/v1/prices/bitcoin", priceOf)
  const accepted = await page.locator(".why .inputs tbody tr:not(.left-out)").count()
  const said = Number(await page.locator(".why .summary b").first().textContent())
  if (accepted !== said || accepted < 3) fault(where, `${accepted} inputs are shown as used, and ${said} counted`)
  if (!(await page.locator(".why .summary .up").count())) fault(where, "the price was not folded again to the same")
  if (!(await page.locator(".chart canvas").count())) fault(where, "there is no chart")
  for (const f of ["1 h", "7 d"]) {
    await page.getByRole("button", { name: f, exact: true }).click()
    await page.waitForFunction((text) => document.querySelector(".stats")?.textContent.startsWith(text) || document.querySelector(".nothing")?.textContent.startsWith("No candles"), f)
  }
  await page.getByRole("button", { name: "24 h", exact: true }).click()
  // What was said half a minute ago is what the API says was said.
  const slider = page.locator(".slider input")
  await slider.focus()
  for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowLeft")
  await page.waitForSelector(".answered b.then")
  await page.waitForLoadState("networkidle").catch(() => {})
  const instant = await page.inputValue(".machine input[type=datetime-local]")
  const at = new Date(instant + (instant.length === 16 ? ":00Z" : "Z")).toISOString()
  const then = (await rest(`/api/v1/prices/bitcoin/explain?asOf=${at}`)).data?.price
  let shown
  for (const end = Date.now() + 10_000; Date.now() < end; await page.waitForTimeout(100)) {
    shown = Number(await page.getAttribute(".answered b.then", "data-value"))
    if (shown === then) break
  }
  if (shown !== then) fault(where, `it says that ${shown} was told at ${at}, the API says ${then}`)
}

async function system(page, where) {
  await live(page, where)
  const { venues } = (await rest("/api/v1/system")).data
  for (const v of venues) {
    const row = page.locator(`tr[data-venue="${v.slug}"]`)
    if ((await row.getAttribute("data-state")) !== v.state) fault(where, `${v.slug} is shown otherwise than ${v.state}`)
  }
  if (!venues.length || (await page.locator("tr[data-venue]").count()) !== venues.length) fault(where, `the API names ${venues.length} venues, the page others`)
  // A busy broker is asked again: how far stages are is then not known for some seconds.
  await page.waitForFunction(() => document.querySelectorAll(".stage").length >= 6)
  await page.waitForFunction(() => [...document.querySelectorAll("tr[data-venue] .rate")].some((cell) => Number(cell.textContent) > 0))
}

// figure is equals for what a page asks for again by itself, at the first of the places that a selector names.
async function figure(page, where, selector, path, pick) {
  const told = new Set()
  let shown
  for (const end = Date.now() + patience; Date.now() < end; await page.waitForTimeout(150)) {
    const body = await rest(path)
    if (!body.error) told.add(pick(body))
    shown = Number(await page.locator(selector).first().getAttribute("data-value"))
    if (told.has(shown)) return
  }
  fault(where, `${selector} shows ${shown}, the API says ${[...told].slice(-5)}`)
}

// sorts clicks on a column and looks whether its numbers then go down.
async function sorts(page, where, table, name, column) {
  await page.locator(`${table} thead button`, { hasText: name }).first().click()
  const values = await page.locator(`${table} tbody tr td:nth-child(${column}) [data-value]`).evaluateAll((cells) => cells.map((c) => Number(c.dataset.value)))
  if (values.length < 3 || values.some((n, i) => i && n > values[i - 1])) fault(where, `sorted by ${name} it begins with ${values.slice(0, 5)}`)
}

async function rates(page, where) {
  await live(page, where)
  const of = (id, category) => (a) => a.data.summary.find((s) => s.coinId === id && s.category === category)?.maxRate
  await figure(page, where, '.rates tr[data-id="usd-coin"] td:nth-child(2) [data-value]', "/api/v1/rates/summary?symbol=usd-coin&category=lending", of("usd-coin", "lending"))
  await sorts(page, where, ".rates", "Lending, best", 2)
  const all = await page.locator(".rates tbody tr").count()
  await page.locator(".search input").fill("usd-coin")
  await page.waitForFunction((n) => document.querySelectorAll(".rates tbody tr").length < n, all)
  if (!(await page.locator('.rates tr[data-id="usd-coin"]').count())) fault(where, "the search does not find usd-coin")
  await page.locator(".search input").fill("")
}

async function ratesOfCoin(page, where) {
  await live(page, where)
  const { rates: told } = (await rest("/api/v1/rates/usd-coin")).data
  const yields = told.filter((r) => r.category !== "price")
  if (!yields.length || (await page.locator(".entries tbody tr").count()) !== yields.length) fault(where, `the API tells ${yields.length} rates, the page others`)
  if (!(await page.locator(".entries .reported-as", { hasText: /\d/ }).count())) fault(where, "no rate is shown as it was reported")
  await sorts(page, where, ".entries", "Rate (APY)", 3)
  await page.getByRole("button", { name: "lending", exact: true }).click()
  if ((await page.locator(".entries tbody tr").count()) !== yields.filter((r) => r.category === "lending").length) fault(where, "of the lending rates it shows others")
}

async function stablecoins(page, where) {
  await live(page, where)
  await equals(page, where, 'tr[data-id="tether"] .price [data-value]', "/api/v1/prices/tether", priceOf)
  await figure(page, where, 'tr[data-id="tether"] .off [data-value]', "/api/v1/stablecoins/index?limit=200", (a) => a.stablecoins.find((p) => p.id === "tether")?.pegDeviation)
  await page.getByRole("button", { name: "show 30 days of Tether", exact: true }).click()
  await page.waitForSelector(".peg-detail .plain tbody tr")
  await sorts(page, where, ".pegs", "Off its peg", 3)
}

async function market(page, where) {
  await live(page, where)
  await figure(page, where, ".strip .total", "/api/v1/global-stats/summary", (a) => a.data.totalMarketCapUsd)
  await figure(page, where, ".quote .fear", "/api/v1/global-stats/summary", (a) => a.data.fearGreed?.value)
  await figure(page, where, ".strip .locked", "/api/v1/global-stats/defi", (a) => a.data.totalTvl)
  await page.getByRole("button", { name: "51-100", exact: true }).click()
  if (!(await page.locator(".movers tbody tr").count())) fault(where, "nothing moved in ranks 51 to 100")
}

async function sql(page, where, seen) {
  await live(page, where)
  // Every sample runs, and what it finds is shown.
  const samples = await page.locator(".sample").count()
  if (samples < 8) fault(where, `it offers ${samples} statements`)
  for (let i = 0; i < samples; i++) {
    const sample = page.locator(".sample").nth(i)
    const name = await sample.textContent()
    const answered = page.waitForResponse((r) => r.url().endsWith("/api/v1/sql") && r.request().postData()?.includes("FROM v_"))
    await sample.click()
    const answer = await answered
    if (answer.status() !== 200) fault(where, `${name}: got ${answer.status()} ${await answer.text()}`)
    await page.waitForFunction(() => !document.querySelector(".go")?.disabled)
    const told = (await answer.json()).rows
    if (Number(await page.getAttribute(".result", "data-rows")) !== told) fault(where, `${name}: it does not say ${told} rows`)
    if (i < 4 && !told) fault(where, `${name}: found nothing`)
  }
  // A fault is reported, and its place is marked.
  seen.quiet = true // the console logs every 400
  await page.fill("#query", "SELECT symbol,\n  pricee FROM v_prices LIMIT 1")
  await page.keyboard.press("Control+Enter")
  await page.waitForSelector(".fault p")
  const said = await page.textContent(".fault")
  if (!/line 2, column 3/.test(said) || !/price/.test(said)) fault(where, `a misspelt column is answered with ${said}`)
  const marked = await page.$eval("#query", (box) => box.value.slice(box.selectionStart, box.selectionEnd))
  if (marked !== "pricee") fault(where, `of a misspelt column it marks ${JSON.stringify(marked)}`)
  seen.quiet = false
  // Names are completed as they are typed, and with Ctrl and space; views that take parameters have columns too.
  await page.waitForSelector(".view")
  if (!(await page.locator(".view", { hasText: "v_universe_at" }).locator("dt").count())) fault(where, "it shows no columns of v_universe_at")
  const box = page.locator("#query")
  const suggested = () => page.$$eval("#completion:not([hidden]) [role=option] code", (all) => all.map((e) => e.textContent))
  const holds = async (want) => { if ((await box.inputValue()) !== want) fault(where, `completed to ${JSON.stringify(await box.inputValue())}, want ${JSON.stringify(want)}`) }
  await box.fill("")
  await box.pressSequentially("SELECT * FROM v_univ")
  const found = await suggested()
  if (found.join() !== "v_universe,v_universe_at") fault(where, `v_univ is completed to ${found}`)
  await accessible(page, where + " with suggestions")
  await page.keyboard.press("ArrowDown")
  const active = await box.getAttribute("aria-activedescendant")
  if ((await page.textContent("#" + active + " code")) !== "v_universe_at") fault(where, `the arrow chooses ${active}`)
  await page.keyboard.press("ArrowUp")
  await page.keyboard.press("Enter")
  await holds("SELECT * FROM v_universe")
  await box.pressSequentially(" WHERE market_c")
  await page.keyboard.press("Tab")
  await holds("SELECT * FROM v_universe WHERE market_cap")
  await box.pressSequentially(" > 1 ORDER BY 'ran")
  if ((await suggested()).length) fault(where, "a text is completed")
  await box.fill("SELECT  FROM v_universe")
  await box.evaluate((e) => e.setSelectionRange(7, 7))
  await page.keyboard.press("Control+Space")
  const all = await suggested()
  if (!all.includes("market_cap") || all.includes("bid")) fault(where, `with Ctrl and space it offers ${all}`)
  await page.keyboard.press("Escape")
  if ((await suggested()).length) fault(where, "Escape leaves the list open")
  await page.keyboard.press("Enter")
  await holds("SELECT \n FROM v_universe")
  // The form makes files, by itself.
  await page.fill("#query", "SELECT 42 AS answer, 'a' AS b")
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV", exact: true }).click()])
  const text = await readFile(await file.path(), "utf8")
  if (file.suggestedFilename() !== "marketlog.csv" || text !== '"answer","b"\n42,"a"\n') fault(where, `the file ${file.suggestedFilename()} holds ${JSON.stringify(text)}`)
  const [parquet] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Parquet", exact: true }).click()])
  const bytes = await readFile(await parquet.path())
  if (bytes.subarray(0, 4).toString() !== "PAR1" || bytes.subarray(-4).toString() !== "PAR1") fault(where, "the Parquet file is none")
  await page.fill("#query", "SELECT symbol, price FROM v_prices WHERE coin_id = 'bitcoin' ORDER BY time DESC LIMIT 3")
  await page.locator(".go").click()
  await page.waitForFunction(() => document.querySelectorAll(".grid tbody tr").length === 3)
  await page.waitForSelector(".view")
}

async function guides(page, where) {
  for (const name of ["rest", "stream", "sql"]) if (!(await page.locator(`.contents a[href="/docs/${name}"]`).count())) fault(where, `it does not name ${name}`)
  const broken = await page.$$eval(".guide a", (links) => links.map((a) => a.getAttribute("href")).filter((to) => !/^(\/docs|https:|#)/.test(to)))
  if (broken.length) fault(where, `its links lead nowhere: ${broken}`)
}

async function reference(page, where) {
  await live(page, where)
  await page.locator(".search input").fill("listPrices")
  await page.waitForFunction(() => document.querySelectorAll(".operation").length < 5)
  const operation = page.locator("#listPrices")
  await operation.locator("summary").first().click()
  for (const named of ["v_prices", "prices", "marketlog price"]) if (!(await operation.locator(".elsewhere").textContent()).includes(named)) fault(where, `listPrices does not name ${named}`)
  for (const [label, text] of [["Python", "client.list_prices("], ["TypeScript", "client.listPrices("], ["Go", "client.ListPrices("], ["An answer", '"coinId"']]) {
    const example = operation.locator(".examples details").filter({ has: page.getByText(label, { exact: true }) })
    await example.locator("summary").click()
    if (!(await example.locator("pre").textContent()).includes(text)) fault(where, `listPrices shows no ${label}`)
  }
  await operation.locator("#listPrices-symbols").fill("btc,eth")
  await operation.getByRole("button", { name: "Send" }).click()
  const answer = operation.locator(".answer")
  await answer.waitFor()
  if ((await answer.getAttribute("data-status")) !== "200" || !/"coinId": "ethereum"/.test(await answer.textContent())) fault(where, `listPrices is answered with ${await answer.textContent()}`)
  await page.locator(".search input").fill("")
}

const routes = [["/", prices], ["/coins/bitcoin", coin], ["/rates", rates], ["/rates/usd-coin", ratesOfCoin], ["/stablecoins", stablecoins], ["/market", market], ["/sql", sql], ["/system", system],
  ["/docs", guides, "still"], ["/docs/stream", guides, "still"], ["/docs/api", reference]]

// A venue that hangs up is shown as lost within five seconds, three times that on a busy machine.
{
  const where = "a venue that hangs up"
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  page.setDefaultTimeout(240_000)
  await page.goto(mortal + "/system")
  await page.waitForSelector('tr[data-venue="kraken"][data-state="up"]')
  await ask("disconnect")
  const began = Date.now()
  await page.waitForSelector('tr[data-venue="kraken"]:not([data-state="up"])')
  const seconds = (Date.now() - began) / 1000
  say({ figure: "a venue that hangs up is shown as lost after, s", value: seconds })
  if (seconds > 15) fault(where, `it is shown after ${seconds} s`)
  await context.close()
}

// A server that is killed and started again is taken up again, by itself, from where the stream broke off.
{
  const where = "a killed server"
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  page.setDefaultTimeout(240_000) // a new instance has its table a minute after its first price, on a busy machine two
  await page.goto(mortal + "/")
  await page.waitForSelector("#live .going")
  const before = await page.getAttribute('tr[data-id="bitcoin"] .price', "data-value")
  await ask("kill")
  await page.waitForSelector("#live .waiting")
  const began = Date.now()
  await ask("start")
  await page.waitForSelector("#live .going")
  say({ figure: "a page is live again after the start, s", value: (Date.now() - began) / 1000 })
  const resumed = await page.waitForSelector("#live .resumed", { timeout: 15_000 }).then((place) => place.textContent(), () => "")
  if (!/\d/.test(resumed)) fault(where, "it does not say what it made up for")
  await page.waitForFunction((old) => document.querySelector('tr[data-id="bitcoin"] .price')?.dataset.value !== old, before)
  const asked = await page.evaluate(async () => (await fetch("/api/v1/prices/bitcoin")).status)
  if (asked !== 200) fault(where, `the session got ${asked} from the new process`)
  await context.close()
  await ask("end") // another instance beside the demo would slow down all that follows
}

// Without scripts there are numbers all the same.
{
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } })
  const money = /^\$\d[\d,]*\.\d+[KMBT]?$/
  for (const [path, selector, form] of [["/", ".prices tbody .price", money], ["/coins/bitcoin", ".quote .now", money], ["/rates", "tr:has(a[href='/rates/usd-coin']) td.number", /^\d+\.\d\d%$/],
    ["/rates/usd-coin", "tbody td.number", /^-?\d+\.\d\d%$/], ["/stablecoins", "tr:has(a[href='/coins/tether']) td.number", money], ["/market", ".strip dd", /^\$\d/], ["/docs/sql", ".guide h1", /^SQL$/]]) {
    const page = await context.newPage()
    await page.goto(base + path)
    const text = await page.locator(selector).first().textContent()
    if (!form.test(text ?? "")) fault(`${path} without scripts`, `it shows ${JSON.stringify(text)}`)
    await page.close()
  }
  await context.close()
}

// What the table costs while it moves, with a whole page of rows on the screen.
{
  const context = await browser.newContext({ viewport: { width: 1280, height: 1400 } })
  const { page } = await watch(context, "the cost of /", base)
  await page.goto(base + "/")
  await live(page, "the cost of /")
  const cdp = await context.newCDPSession(page)
  await cdp.send("Performance.enable")
  const read = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]))
  await page.waitForTimeout(2000)
  const before = await read()
  await page.waitForTimeout(6000)
  const after = await read()
  const busy = ((after.TaskDuration - before.TaskDuration) * 1000) / (after.Timestamp - before.Timestamp)
  say({ figure: "main thread of /, ms/s", value: Math.round(busy) })
  // Four times what an idle machine takes: the naive table took ten times as much.
  if (busy > 240) fault("the cost of /", `the main thread is busy ${Math.round(busy)} ms a second`)
  await context.close()
}

// What others write stays text.
{
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  for (const path of ["/", "/coins/bitcoin", "/rates", "/rates/evil", "/stablecoins", "/market"]) {
    const where = `${path} with hostile names`
    const { page, seen } = await watch(context, where, hostile)
    seen.quiet = true // this server has no stream
    await page.goto(hostile + path)
    await page.waitForFunction(() => document.querySelector("#app")?.textContent.includes("onerror=alert(1)"))
    await page.waitForTimeout(300)
    const harm = await page.evaluate(() => ({
      pictures: document.querySelectorAll("main img").length, scripts: document.scripts.length,
      links: [...document.querySelectorAll("main a")].filter((a) => !["http:", "https:"].includes(a.protocol)).length,
      turned: document.querySelector("#app").textContent.includes("\u202e"), ran: window.harmed === true,
    }))
    if (harm.pictures || harm.scripts !== 2 || harm.links || harm.turned || harm.ran) fault(where, JSON.stringify(harm))
    for (const v of await page.evaluate(() => window.violations)) if (!v.startsWith("connect-src")) fault(where, `the policy was violated: ${v}`)
    await page.close()
  }
  await context.close()
}

// What can be done on a page is done on one large screen and on the narrowest phone, a light and a dark one. Where pictures are made the other two
// are looked at.
for (const [width, height, colorScheme] of [[1280, 900, "light"], [1280, 900, "dark"], [360, 740, "light"], [360, 740, "dark"]]) {
  const thorough = (width < 500) === (colorScheme === "dark")
  if (!thorough && !shots) continue
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: width < 500 ? 2 : 1, hasTouch: width < 500, locale: "en-US", timezoneId: "Europe/Berlin" })
  for (const [path, use, still] of routes) {
    const where = `${path} at ${width}, ${colorScheme}`
    const { page, seen } = await watch(context, where, base)
    const began = Date.now()
    try {
      await page.goto(base + path)
      if (thorough || still) await use(page, where, seen)
      else await live(page, where)
      await look(page, where)
      if (shots) await page.screenshot({ path: `${shots}/${path.slice(1).replaceAll("/", "-") || "prices"}-${width}-${colorScheme}.png`, fullPage: path !== "/" })
      seen.quiet = true
      await accessible(page, where)
    } catch (e) {
      fault(where, e.message)
    }
    say({ figure: `${where} took, s`, value: (Date.now() - began) / 1000 })
    await page.close()
  }
  await context.close()
}

// The pictures that the README shows: the top of the prices, and why a price is what it is.
if (pictures) {
  for (const [name, path, colorScheme, top] of [["prices", "/", "light"], ["why", "/coins/bitcoin", "dark", ".why"]]) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme, locale: "en-US", timezoneId: "UTC" })
    const { page } = await watch(context, `the picture of ${path}`, base)
    await page.goto(base + path)
    await live(page, `the picture of ${path}`)
    await page.waitForTimeout(5000) // what is asked for once the prices are there
    if (top) await page.locator(top).first().evaluate((part) => part.scrollIntoView())
    await page.screenshot({ path: `${pictures}/${name}.png` })
    await context.close()
  }
}

await browser.close()
say({ done: true })
process.exit(0)
