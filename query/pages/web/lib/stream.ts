// The stream of prices, kept open: what ends it begins it again where it broke off, by the cursor of the last message. All that a
// page knows of the connection is here.
import { signal } from "@preact/signals"

export interface Price {
  symbol: string
  coinId: string
  price: number
  volume: number
  timestamp: number
  source: string
  previousPrice: number
  changePercent24h?: number
  isStale?: boolean
}

export interface State {
  coinId: string
  reason?: string
}

interface Frame {
  type: string
  timestamp: string
  data?: unknown
  serverTime?: string
  cursor?: string
  seconds?: number
}

export interface Handlers {
  // prices are of one frame; first means that they are all that is known, after a connection began.
  prices(changed: Price[], first: boolean): void
  stale?(coins: State[], stale: boolean): void
}

export type Phase = "connecting" | "live" | "waiting" | "ended"

export interface Status {
  phase: Phase
  // at is the log's time of the newest frame, lag what it took to here; milliseconds.
  at: number
  lag: number
  // again is how often the connection began after the first time.
  again: number
  // resumed is of how many seconds of the log a connection that began again has sent what was missed; undefined: of none, or that
  // is a while ago.
  resumed: number | undefined
}

export const status = signal<Status>({ phase: "connecting", at: 0, lag: 0, again: 0, resumed: undefined })

const firstWait = 400
const longestWait = 8000
// silence is after how long without any frame a connection is given up: a busy instance sends one each second.
const silence = 20_000
// signedOut is the close code of a session that has ended.
const signedOut = 4001
const hiddenInterval = 60_000
const shownInterval = 1000
const heartbeat = 10_000
// untaken is after how many connections in a row that never began a cursor is given up: another version may not read it.
const untaken = 30
// refusals is after how many answers to a cursor that it is none the page begins anew.
const refusals = 20
const resumedShown = 20_000

export class Stream {
  private socket: WebSocket | undefined
  private wait = firstWait
  private opened = 0
  private offset = 0
  private heard = 0
  private cursor = ""
  private failed = 0
  // resuming is until the server has answered the cursor.
  private resuming = false
  private refused = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  // symbols are coins by id; undefined: all.
  constructor(private readonly handlers: Handlers, private readonly symbols?: string[]) {}

  start(): void {
    this.connect()
    setInterval(() => this.watch(), 5000)
    document.addEventListener("visibilitychange", () => {
      this.subscribe()
      if (!document.hidden && status.value.phase === "waiting") this.soon(0)
    })
    addEventListener("online", () => this.soon(0))
    addEventListener("pagehide", () => this.socket?.close(1000))
    addEventListener("pageshow", (e) => {
      if ((e as PageTransitionEvent).persisted) this.soon(0)
    })
  }

  private connect(): void {
    this.timer = undefined
    const wanted = new URLSearchParams({ intervalMs: String(this.interval()), heartbeatMs: String(heartbeat) })
    if (this.symbols) wanted.set("symbols", this.symbols.join(","))
    if (++this.failed > untaken) this.cursor = ""
    this.resuming = this.cursor !== ""
    if (this.resuming) wanted.set("cursor", this.cursor)
    const socket = new WebSocket(location.origin.replace(/^http/, "ws") + "/api/v1/prices/ws?" + wanted, ["marketlog.v1"])
    this.socket = socket
    this.heard = Date.now()
    socket.onmessage = (e) => {
      if (this.socket === socket) this.take(JSON.parse(e.data as string) as Frame)
    }
    socket.onclose = (e) => {
      if (this.socket !== socket) return
      this.socket = undefined
      if (e.code === signedOut) {
        this.report({ phase: "ended" })
        return
      }
      this.report({ phase: "waiting" })
      this.soon(this.wait * (0.75 + Math.random() / 2))
      this.wait = Math.min(longestWait, this.wait * 2)
    }
  }

  private soon(ms: number): void {
    if (this.socket || status.value.phase === "ended") return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.connect(), ms)
  }

  // watch gives up a connection that is open and silent, as one is whose other end has vanished.
  private watch(): void {
    if (document.hidden || !this.socket || Date.now() - this.heard < silence) return
    const dead = this.socket
    this.socket = undefined
    dead.close()
    this.report({ phase: "waiting" })
    this.soon(0)
  }

  private subscribe(): void {
    if (this.socket?.readyState !== WebSocket.OPEN) return
    this.socket.send(JSON.stringify({ type: "subscribe", ...(this.symbols ? { symbols: this.symbols } : {}), intervalMs: this.interval(), heartbeatMs: heartbeat, snapshot: false }))
  }

  private interval(): number {
    return document.hidden ? hiddenInterval : shownInterval
  }

  private take(frame: Frame): void {
    const now = Date.now()
    this.heard = now
    switch (frame.type) {
      case "welcome":
        if (frame.serverTime) this.offset = Date.parse(frame.serverTime) - now
        this.wait = firstWait
        this.failed = 0
        this.opened++
        return
      case "initial_prices":
      case "price_update":
        this.handlers.prices(frame.data as Price[], frame.type === "initial_prices")
        break
      case "error":
        // A server that has just started knows no second of the log yet, and takes no cursor for a moment.
        if (!this.resuming) return
        if (++this.refused > refusals) this.cursor = ""
        this.socket?.close(1000)
        return
      case "gap":
        this.resuming = false
        this.refused = 0
        return // the present follows
      case "resumed":
        this.resuming = false
        this.refused = 0
        this.report({ resumed: frame.seconds })
        setTimeout(() => this.report({ resumed: undefined }), resumedShown)
        break
      case "heartbeat":
        break
      case "stale":
      case "fresh":
        this.handlers.stale?.(frame.data as State[], frame.type === "stale")
        break
      default:
        return // a later version may send more
    }
    if (frame.cursor) this.cursor = frame.cursor
    const at = Date.parse(frame.timestamp)
    this.report({ phase: "live", at, lag: now + this.offset - at })
  }

  private report(change: Partial<Status>): void {
    status.value = { ...status.value, again: Math.max(0, this.opened - 1), ...change }
  }
}
