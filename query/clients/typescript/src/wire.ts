/** text is a value as it is sent in an address. */
export function text(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(text).join(",")
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

/**
 * checkNames refuses arguments that there are not, and lists those that there are: one that is left out where nobody notices gives another
 * answer than was asked for. Types refuse them too, but not in plain JavaScript. missing are required and were not given.
 */
export function checkNames(of: string, known: readonly string[], given: object, missing: readonly string[] = []): void {
  const unknown = Object.entries(given).filter(([name, value]) => value !== undefined && !known.includes(name)).map(([name]) => name)
  if (!unknown.length && !missing.length) return
  const faults = [...missing.map((name) => `${name} is missing`), ...unknown.map((name) => `${name} is not an argument`)]
  throw new TypeError(`${of}: ${faults.join(", ")}; its arguments are ${known.join(", ") || "none"}`)
}

/** reason is why a connection failed, which fetch hides behind its own error. */
export function reason(e: unknown): string {
  const cause = (e as { cause?: unknown }).cause
  return String((cause as Error | undefined)?.message || (e as Error).message || e)
}
