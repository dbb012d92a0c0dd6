// Numbers and times as people read them. Nothing here computes a number that the API did not answer.

const grouped = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const four = new Intl.NumberFormat(undefined, { minimumFractionDigits: 4, maximumFractionDigits: 4 })
const significant = new Intl.NumberFormat(undefined, { minimumSignificantDigits: 4, maximumSignificantDigits: 4 })
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })

export const none = "–"

// price writes as many digits as distinguish two prices.
export function price(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return none
  const size = Math.abs(n)
  if (size >= 100) return grouped.format(n)
  if (size >= 0.1 || size === 0) return four.format(n)
  return significant.format(n)
}

export function usd(n: number | undefined): string {
  const text = price(n)
  return text === none ? text : "$" + text
}

export function percent(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return none
  const rounded = Number(n.toFixed(2)) || 0 // never −0
  return (rounded > 0 ? "+" : "") + grouped.format(rounded) + "%"
}

// sign is the class of a change.
export function sign(n: number | undefined): "up" | "down" | "" {
  return n === undefined || n === 0 || !Number.isFinite(n) ? "" : n > 0 ? "up" : "down"
}

export function amount(n: number | undefined, currency = "$"): string {
  if (n === undefined || !Number.isFinite(n)) return none
  for (const [from, name] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]] as const) {
    if (Math.abs(n) >= from) return currency + grouped.format(n / from) + name
  }
  return currency + grouped.format(n)
}

export function count(n: number | undefined): string {
  return n === undefined ? none : whole.format(n)
}

export function bps(n: number | undefined, digits = 1): string {
  if (n === undefined || !Number.isFinite(n)) return none
  return (n < 0 ? "−" : "") + Math.abs(n).toFixed(digits)
}

export function age(ms: number): string {
  if (ms < 1000) return whole.format(ms) + " ms"
  const s = ms / 1000
  if (s < 60) return s.toFixed(1) + " s"
  if (s < 3600) return Math.floor(s / 60) + " min"
  return Math.floor(s / 3600) + " h"
}

const pad = (n: number) => String(n).padStart(2, "0")

// clock is the time of day in UTC.
export function clock(at: number): string {
  const d = new Date(at)
  return pad(d.getUTCHours()) + ":" + pad(d.getUTCMinutes()) + ":" + pad(d.getUTCSeconds())
}

export function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

// local is the same instant by the reader's clock, for a title.
export function local(at: number): string {
  return "by your clock " + new Date(at).toLocaleString()
}

// plain leaves out what turns the direction of a line around or is not seen: a name of others stays within its place.
export function plain(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "")
}

// outside is an address of others that may be linked: over https only.
export function outside(url: string | undefined): string | undefined {
  if (!url) return undefined
  try {
    const u = new URL(url)
    return u.protocol === "https:" ? u.href : undefined
  } catch {
    return undefined
  }
}

// rate is percent a year.
export function rate(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return none
  return grouped.format(Number(n.toFixed(2)) || 0) + "%"
}

// signed is for basis points that lie on either side of something.
export function signed(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return none
  const rounded = Number(n.toFixed(1)) || 0
  return (rounded > 0 ? "+" : rounded < 0 ? "−" : "") + Math.abs(rounded).toFixed(1)
}

// ago is how long before now an instant was.
export function ago(iso: string): string {
  const ms = Date.now() - Date.parse(iso)
  return Number.isFinite(ms) ? age(Math.max(0, ms)) + " ago" : none
}
