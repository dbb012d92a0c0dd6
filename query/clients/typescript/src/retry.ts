import { APIError, RateLimited, Unavailable } from "./errors.js"

/**
 * How often and how long a call is made again: after 429 and 503 when the server says it may, and when the connection fails. All operations
 * only read, so a second call harms nothing.
 */
export interface Retry {
  /** attempts counts the first call too; 1 is never again. */
  attempts: number
  /** longest is the most seconds that a call waits in all: a wait that does not fit into it is not begun. */
  longest: number
}

export const defaultRetry: Retry = { attempts: 5, longest: 30 }

/** again is whether the same call may succeed later. */
export function again(error: unknown): boolean {
  return !(error instanceof APIError) || error instanceof RateLimited || error instanceof Unavailable
}

/** pause is how many seconds to wait: as the server says, else longer each time. Spread, so that all who were refused do not come back at once. */
export function pause(error: unknown, attempt: number): number {
  if (error instanceof APIError && error.retryAfter !== undefined) return error.retryAfter + Math.random() / 4
  return Math.min(8, 0.2 * 2 ** Math.min(attempt, 10)) * (0.75 + Math.random() / 2)
}

/** sleep ends early, without an error, when the signal is aborted. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const over = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", over)
      resolve()
    }
    const timer = setTimeout(over, seconds * 1000)
    signal?.addEventListener("abort", over)
  })
}
