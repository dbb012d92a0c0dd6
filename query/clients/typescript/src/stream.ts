// The stream, kept open over disconnects by the cursor of the last message that was processed.
import { APIError, ConnectionFailed, GapError, MarketlogError, errorOf } from "./errors.js"
import { again, pause, sleep } from "./retry.js"
import type * as types from "./types.js"
import { checkNames, reason, text } from "./wire.js"

export type Delivery = "latest" | "all"

/** A message of the stream; `types` has an interface Message… for each `type`. */
export type Message = { type: string; cursor?: string } & Record<string, unknown>

export interface StreamOptions {
  /** symbols are coins by symbol or id; left out: all. */
  symbols?: readonly string[]
  delivery?: Delivery
  /** channels other than prices come from messages(). */
  channels?: readonly string[]
  /** cursor is that of a stream before this one, to go on behind it. */
  cursor?: string
  snapshot?: boolean
  intervalMs?: number
  /** patience is after how many seconds without any message the last failure is thrown; 300 if it is left out. */
  patience?: number
  onGap?: (gap: types.MessageGap) => void
  /** since begins in the past, with delivery "all": a replay, which ends at until or goes on with the present. */
  since?: Date | string
  until?: Date | string
  /** speed is how many seconds of the log come in one; as many as are read if it is left out. */
  speed?: number
}

const optionNames: readonly (keyof StreamOptions)[] =
  ["symbols", "delivery", "channels", "cursor", "snapshot", "intervalMs", "patience", "onGap", "since", "until", "speed"]

const heartbeatMs = 5000
// A connection that is silent for so long is given up: a heartbeat comes each five seconds.
const silence = 20_000
// No message is longer; the longest holds the prices of all coins. In UTF-16 units.
const longestLine = 32 << 20
// A connection that ends behind these has brought nothing: the next try waits longer.
const beforeData = ["welcome", "subscribed", "resumed"]

/** An asynchronous iterable over prices, endless but for a replay with an end. Leaving the loop, or close, ends the connection. */
export class Stream implements AsyncIterable<types.WsStreamed> {
  /** cursor is where a stream begun with it goes on: behind the last message whose prices were all taken. */
  cursor: string | undefined
  /** reconnects is how often the connection was lost, or could not be made. */
  reconnects = 0
  /** simulated is whether the prices are invented; undefined before the first message. */
  simulated: boolean | undefined
  private failures = 0
  private failingSince = 0
  private readonly ended = new AbortController()
  private readonly delivery: Delivery | undefined
  private present = false // whether a replay has come to it

  constructor(private readonly base: string, private readonly headers: Record<string, string>, private readonly options: StreamOptions) {
    checkNames("stream", optionNames, options)
    this.cursor = options.cursor
    this.delivery = options.since === undefined ? options.delivery : "all"
  }

  close(): void {
    this.ended.abort()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<types.WsStreamed, void, void> {
    for await (const message of this.messages()) {
      const latest = this.delivery !== "all"
      if (message.type === "gap") {
        const gap = message as unknown as types.MessageGap
        if (this.options.onGap) this.options.onGap(gap)
        else if (!latest) throw new GapError(gap)
      }
      // With delivery all the prices at the beginning are state, not one of the prices that are written.
      if (message.type === "price_update" || (message.type === "initial_prices" && latest)) yield* message["data"] as types.WsStreamed[]
    }
  }

  /**
   * Whole messages in place of prices, those about the stream itself included. A gap is a message here, not an error. `cursor` moves when
   * the next message is asked for.
   */
  async *messages(): AsyncGenerator<Message, void, void> {
    while (!this.ended.signal.aborted) {
      let failed: unknown
      const connection = new AbortController()
      const end = () => connection.abort()
      this.ended.signal.addEventListener("abort", end)
      let quiet = setTimeout(end, silence)
      try {
        const answer = await fetch(`${this.base}/api/v1/stream?${this.asks()}`, { headers: { ...this.headers, Accept: "application/x-ndjson" }, signal: connection.signal })
        if (answer.status === 204) return // nothing is left of a replay
        if (answer.status !== 200) throw errorOf(answer.status, await answer.json().catch(() => undefined), answer.headers.get("Retry-After"))
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
        let rest = ""
        for (;;) {
          clearTimeout(quiet)
          quiet = setTimeout(end, silence)
          const { done, value } = await reader.read()
          clearTimeout(quiet) // what the caller takes for its work is no silence of the server
          if (done) throw new ConnectionFailed("the server ended the stream")
          // What is left when a connection ends is the part of a line that was lost, and comes again.
          const lines = (rest + value).split("\n")
          rest = lines.pop()!
          if (rest.length > longestLine) throw new ConnectionFailed(`a message of more than ${longestLine} characters`)
          for (const line of lines) {
            const message = this.read(line)
            if (!message) continue
            yield message
            this.cursor = message.cursor ?? this.cursor
            if (message.type === "replay_end") return
            this.present ||= message.type === "live"
          }
        }
      } catch (e) {
        failed = e
      } finally {
        clearTimeout(quiet)
        this.ended.signal.removeEventListener("abort", end)
        end() // also where the caller left the loop
      }
      if (this.ended.signal.aborted) return
      await sleep(this.wait(failed), this.ended.signal)
    }
  }

  private asks(): URLSearchParams {
    const { symbols, channels, snapshot, intervalMs, since, until, speed } = this.options
    const asked = { symbols: symbols?.length ? symbols : undefined, channels, delivery: this.delivery, snapshot, intervalMs, heartbeatMs, cursor: this.cursor || undefined,
      from: this.cursor ? undefined : since, to: until, speed: this.present ? undefined : speed }
    return new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== undefined).map(([name, value]) => [name, text(value)]))
  }

  /** read is the message in a line; undefined of a line that keeps the connection open. */
  private read(line: string): Message | undefined {
    if (line.trim() === "") return undefined
    const message = JSON.parse(line) as Message
    if (message.type === "error") {
      const fault = message["error"] as types.WsFault
      if (fault.code === "LAGGING") throw new ConnectionFailed(fault.message)
      throw errorOf(400, { error: fault }, null)
    }
    if (message.type === "welcome") this.simulated = message["simulated"] as boolean | undefined
    if (!beforeData.includes(message.type)) this.failures = 0
    return message
  }

  /** wait is how many seconds until the next try; it throws where there is none. */
  private wait(failed: unknown): number {
    if (failed instanceof APIError && !(again(failed) || failed.status >= 500)) throw failed
    const now = Date.now() / 1000
    if (this.failures === 0) this.failingSince = now
    const seconds = Math.min(30, pause(failed, this.failures))
    this.failures++
    const patience = this.options.patience ?? 300
    if (now + seconds - this.failingSince > patience) {
      throw failed instanceof MarketlogError ? failed : new ConnectionFailed(`no message for ${patience} s: ${reason(failed)}`, { cause: failed })
    }
    this.reconnects++
    return seconds
  }
}
