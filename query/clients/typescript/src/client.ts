import { ConnectionFailed, errorOf } from "./errors.js"
import { Operations, type Operation, type Pages } from "./operations.js"
import { again, defaultRetry, pause, sleep, type Retry } from "./retry.js"
import { Rows, type FileFormat } from "./sql.js"
import { Stream, type StreamOptions } from "./stream.js"
import { checkNames, reason, text } from "./wire.js"

export interface Options {
  /** url is the server's, else MARKETLOG_URL, else http://127.0.0.1:8080; in a page, the page's own server. */
  url?: string
  /** key is an API key, else MARKETLOG_API_KEY. */
  key?: string
  /** timeout is in seconds, of each attempt of a call; 30 if it is left out. */
  timeout?: number
  retry?: Partial<Retry>
}

/** A client. Each operation of the API is a method, named as in /openapi.json, whose answer is what the server sent. */
export class Client extends Operations {
  /** simulated is whether the last answer was made from invented numbers; undefined before the first. */
  simulated: boolean | undefined
  /** position is what the last answer was made of: asOf with it gives the same answer again; undefined before the first. */
  position: string | undefined
  private readonly base: string
  private readonly headers: Record<string, string>
  private readonly timeout: number
  private readonly retry: Retry

  constructor(options: Options = {}) {
    super()
    const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
    const own = (globalThis as { location?: { origin?: string } }).location?.origin
    const url = options.url || env["MARKETLOG_URL"] || own || "http://127.0.0.1:8080"
    if (!/^https?:\/\//.test(url)) throw new TypeError(`the address of the server is ${JSON.stringify(url)}; it must begin with http:// or https://`)
    this.base = url.replace(/\/+$/, "")
    const key = options.key || env["MARKETLOG_API_KEY"]
    this.headers = key ? { Authorization: "Bearer " + key } : {}
    this.timeout = options.timeout ?? 30
    this.retry = { ...defaultRetry, ...options.retry }
  }

  /** The rows of a statement, at most 100,000; parameters are the values of its {name:Type}. */
  async sql(query: string, parameters: Record<string, unknown> = {}): Promise<Rows> {
    const answer = await this.send("POST", "/api/v1/sql", statement(query, parameters), (r) => r.json())
    return new Rows(answer as ConstructorParameters<typeof Rows>[0])
  }

  /** The rows of a statement as a file, at most 5,000,000. */
  async sqlFile(query: string, parameters: Record<string, unknown> = {}, format: FileFormat = "Parquet"): Promise<Uint8Array> {
    return new Uint8Array(await this.send("POST", "/api/v1/sql?format=" + format, statement(query, parameters), (r) => r.arrayBuffer()))
  }

  /**
   * Prices as they change, over any number of disconnects and restarts of the server. With delivery "all" each price that is written comes
   * exactly once, and what cannot be sent throws GapError, or is given to onGap; with "latest" the newest price of each coin.
   */
  stream(options: StreamOptions = {}): Stream {
    return new Stream(this.base, this.headers, options)
  }

  protected ask<T>(operation: Operation, asked: object): Promise<T> {
    const values = asked as Record<string, unknown>
    const named = Array.from(operation.path.matchAll(/\{(\w+)\}/g), ([, name]) => name!)
    const absent = named.filter((name) => values[name] === undefined || values[name] === null)
    checkNames(`${operation.method} ${operation.path}`, [...named, ...(operation.query ?? []), ...(operation.body ?? [])], asked, absent)
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(values[name])
      if (value === "" || value === "." || value === "..") throw new TypeError(`${name} is ${JSON.stringify(value)}, which names nothing`)
      return encodeURIComponent(value)
    })
    const query = new URLSearchParams(picked(operation.query, values).map(([name, value]) => [name, text(value)]))
    const body = picked(operation.body, values)
    return this.send(operation.method, query.size ? `${path}?${query}` : path, body.length ? Object.fromEntries(body) : undefined, (r) => r.json() as Promise<T>)
  }

  protected async *pages<T>(operation: Operation, pages: Pages, asked: object): AsyncGenerator<T, void, void> {
    const size = Math.min(Number((asked as Record<string, unknown>)[pages.size] ?? pages.most), pages.most)
    let place = pages.place === "page" ? 1 : 0
    for (;;) {
      const body = await this.ask<Record<string, unknown>>(operation, { ...asked, [pages.size]: size, [pages.place]: place })
      const rows = pages.rows.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], body) as T[] | undefined
      yield* rows ?? []
      if (!rows || rows.length < size) return // the last page is one that is not full
      place += pages.place === "page" ? 1 : rows.length
    }
  }

  private async send<T>(method: string, path: string, body: object | undefined, read: (answer: Response) => Promise<T>): Promise<T> {
    for (let attempt = 1, waited = 0; ; attempt++) {
      let failed: unknown
      try {
        const answer = await fetch(this.base + path, {
          method,
          headers: { Accept: "application/json", ...this.headers, ...(body ? { "Content-Type": "application/json" } : {}) },
          signal: AbortSignal.timeout(this.timeout * 1000),
          ...(body ? { body: JSON.stringify(body) } : {}),
        })
        if (answer.status === 200) {
          this.simulated = answer.headers.get("X-Data-Source") === "simulated"
          this.position = answer.headers.get("X-Position") ?? undefined
          return await read(answer)
        }
        failed = errorOf(answer.status, await answer.json().catch(() => undefined), answer.headers.get("Retry-After"))
      } catch (e) {
        failed = new ConnectionFailed(`${this.base} could not be asked, ${attempt} times: ${reason(e)}`, { cause: e })
      }
      const wait = pause(failed, attempt)
      if (!again(failed) || attempt >= this.retry.attempts || waited + wait > this.retry.longest) throw failed
      await sleep(wait)
      waited += wait
    }
  }
}

function statement(query: string, parameters: Record<string, unknown>): object {
  return { query, parameters: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, text(value)])) }
}

function picked(names: readonly string[] | undefined, values: Record<string, unknown>): [string, unknown][] {
  return (names ?? []).filter((name) => values[name] !== undefined && values[name] !== null).map((name) => [name, values[name]])
}
