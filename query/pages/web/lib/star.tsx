import { toggle, watched } from "./watchlist"

// Star puts a coin on the watch-list.
export function Star({ id, name }: { id: string; name: string }) {
  const on = watched.value.has(id)
  return (
    <button type="button" class={on ? "star on" : "star"} aria-pressed={on} aria-label={`Watch ${name}`} onClick={() => toggle(id)}>
      {on ? "★" : "☆"}
    </button>
  )
}
