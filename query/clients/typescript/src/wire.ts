/** text is a value as it is sent in an address. */
export function text(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(text).join(",")
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

/** reason is why a connection failed, which fetch hides behind its own error. */
export function reason(e: unknown): string {
  const cause = (e as { cause?: unknown }).cause
  return String((cause as Error | undefined)?.message || (e as Error).message || e)
}
