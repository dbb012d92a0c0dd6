// The coins that the reader watches; they are kept in this browser and sent nowhere.
import { signal } from "@preact/signals"

const name = "marketlog.watchlist"

function read(): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name) ?? "[]")
    return new Set(Array.isArray(kept) ? kept.filter((id): id is string => typeof id === "string").slice(0, 1000) : [])
  } catch {
    return new Set()
  }
}

export const watched = signal(read())

export function toggle(id: string): void {
  const next = new Set(watched.value)
  if (!next.delete(id)) next.add(id)
  watched.value = next
  try {
    localStorage.setItem(name, JSON.stringify([...next]))
  } catch {
    // a browser that keeps nothing: the list lasts as long as the page
  }
}
