// Asks the API with the session of the page.

export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly retryAfter: number) {
    super(message)
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, credentials: "same-origin", ...(signal ? { signal } : {}) })
  if (answer.ok) return (await answer.json()) as T
  let message = "the server answered " + answer.status
  try {
    message = ((await answer.json()) as { error?: { message?: string } }).error?.message ?? message
  } catch {
    // no JSON: a proxy answered
  }
  throw new Refused(answer.status, message, Number(answer.headers.get("Retry-After")) || 0)
}

// data is what the server put into the page.
export function data<T>(): T {
  return JSON.parse(document.getElementById("data")?.textContent ?? "null") as T
}

// every calls again and again while the page is looked at; a call never overlaps the one before. It returns what stops it.
export function every(ms: number, call: () => Promise<unknown>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const next = (wait: number) => {
    if (!stopped) timer = setTimeout(run, wait)
  }
  const run = async () => {
    let wait = ms
    if (!document.hidden) {
      try {
        await call()
      } catch (e) {
        if (e instanceof Refused) wait = Math.max(ms, e.retryAfter * 1000)
      }
    }
    next(wait)
  }
  next(ms)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

export interface Explanation {
  symbol: string
  coinId: string
  price: number
  median0: number
  method: string
  methodVersion: number
  confidence: number
  confidenceInterval: [number, number]
  score: number
  accepted: string[]
  rejected: string[]
  inputs: Input[]
  asOf: string
  timestamp: string
  published?: string
  reproduced: boolean
  recomputed?: number
}

export interface Input {
  provider: string
  venueSymbol: string
  raw?: number
  basis?: string
  quote: string
  rateUsed?: number
  priceUsd?: number
  receivedAt?: string
  ageMs: number
  accepted: boolean
  reason?: string
  offset: { topic: string; partition: number; offset: number }
}

export interface ListEntry {
  coinId: string
  priceUsd: number
  priceSource: string
  updatedAt: string
  isStale: boolean
  reason?: string
  providers?: number
  rejected?: number
  confidence?: number
}

export interface Chart {
  coinId: string
  timeframe: string
  resolution: string
  dataPoints?: Candle[]
  stats: { minPrice?: number; maxPrice?: number; avgPrice?: number; changePct?: number; totalPoints: number }
}

export interface Candle {
  timestamp: string
  open: number
  high: number
  low: number
  close: number
  volumeUsd: number
  complete: boolean
  origin: string
}
