// What calls throw. All of it is a MarketlogError.
import type { ErrorDetail, MessageGap } from "./types.js"

export class MarketlogError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
  }
}

/** The server could not be reached, or the connection broke, until the tries were used up. */
export class ConnectionFailed extends MarketlogError {}

/** The stream cannot send what came after `since` and up to `until`. A stream begun with `cursor` goes on behind it. */
export class GapError extends MarketlogError {
  readonly reason: string
  readonly since: string | undefined
  readonly until: string
  readonly cursor: string | undefined

  constructor(gap: MessageGap) {
    super(`nothing is sent of what came after ${gap.since ?? "the cursor"} and up to ${gap.until} (${gap.reason}); go on with a stream that has error.cursor, or pass onGap`)
    this.reason = gap.reason
    this.since = gap.since
    this.until = gap.until
    this.cursor = gap.cursor
  }
}

/**
 * An answer that is no success. `field` is the parameter that is wrong and `reason` what is wrong with it, where the answer names one; else
 * `reason` is the message. `remedy` is what to do, where that is known. `details` is all that the server said.
 */
export class APIError extends MarketlogError {
  readonly code: string
  readonly requestId: string
  readonly faults: Record<string, string[]>
  readonly field: string | undefined
  readonly reason: string
  readonly retryAfter: number | undefined
  readonly remedy: string | undefined

  constructor(readonly status: number, readonly details: Partial<ErrorDetail>, retryAfter?: number) {
    const faults = details.errors ?? {}
    const message = details.message ?? `the server answered ${status}`
    const [field] = Object.keys(faults)
    const after = retryAfter ?? details.retryAfter
    const remedy = details.hint ?? remedyOf(status, details, after)
    const all = Object.entries(faults).map(([name, reasons]) => `; ${name} ${reasons.join("; ")}`)
    super(`${details.code ?? status}: ${message}${all.join("")}${remedy ? ` (${remedy})` : ""}`)
    this.code = details.code ?? ""
    this.requestId = details.requestId ?? ""
    this.faults = faults
    this.field = field
    this.reason = field === undefined ? message : faults[field]!.join("; ")
    this.retryAfter = after
    this.remedy = remedy
  }
}

function remedyOf(status: number, details: Partial<ErrorDetail>, retryAfter: number | undefined): string | undefined {
  if (status === 401) return "pass key or set MARKETLOG_API_KEY"
  if (status === 410 && details.availableFrom) return `ask for ${details.availableFrom} or later`
  if (status === 429 && retryAfter !== undefined) return `ask again after ${retryAfter} s`
  return undefined
}

/** 400: a parameter is wrong; `faults` has all that are. */
export class InvalidRequest extends APIError {}

/** 400: a statement is wrong, at `line` and `column` (from 1), or needs more than it may (code SQL_LIMIT). */
export class SQLError extends InvalidRequest {
  get position(): number | undefined {
    return this.details.position
  }
  get line(): number | undefined {
    return this.details.line
  }
  get column(): number | undefined {
    return this.details.column
  }
}

/** 401: the key is missing, invalid or revoked. */
export class NotAuthenticated extends APIError {}

/** 402: the plan of the key does not include this. */
export class PlanRequired extends APIError {}

/** 403: this is allowed to nobody who asks this way. */
export class Forbidden extends APIError {}

/** 404: there is no such coin, provider or path. */
export class NotFound extends APIError {}

/** 410: what was known at that time is kept no more; `availableFrom` is since when it is. */
export class AgedOut extends APIError {
  get availableFrom(): string | undefined {
    return this.details.availableFrom
  }
}

/** 429: the limit of the plan is used up; `retryAfter` is the seconds until a request can be accepted. */
export class RateLimited extends APIError {}

/** 500 and above: the fault is the server's, which finds it by `requestId` in its log. */
export class ServerError extends APIError {}

/** 503: the server starts, or is overloaded; `retryAfter` is the seconds until it is worth another try. */
export class Unavailable extends ServerError {}

const byStatus: Record<number, typeof APIError> = {
  400: InvalidRequest, 401: NotAuthenticated, 402: PlanRequired, 403: Forbidden, 404: NotFound, 410: AgedOut, 429: RateLimited, 503: Unavailable,
}

/** errorOf is the error that an answer is; body is its JSON, or anything else where a proxy answered. */
export function errorOf(status: number, body: unknown, retryAfter: string | null): APIError {
  const details = (body as { error?: Partial<ErrorDetail> } | undefined)?.error ?? {}
  const seconds = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
  const kind = details.code?.startsWith("SQL_") ? SQLError : (byStatus[status] ?? (status >= 500 ? ServerError : APIError))
  return new kind(status, details, seconds)
}
