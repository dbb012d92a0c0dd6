const width = 120
const height = 32

// path draws closes as a line; empty where there is nothing to draw.
export function path(closes: number[]): string {
  const known = closes.filter(Number.isFinite)
  if (known.length < 2) return ""
  const low = Math.min(...known)
  const span = Math.max(...known) - low
  return known
    .map((y, i) => {
      const up = span > 0 ? (y - low) / span : 0.5
      return (i ? "L" : "M") + ((i / (known.length - 1)) * width).toFixed(1) + " " + (height - 2 - up * (height - 4)).toFixed(1)
    })
    .join("")
}

export function Sparkline({ closes, rising }: { closes: number[] | undefined; rising: boolean }) {
  const d = closes ? path(closes) : ""
  if (!d) return null
  return (
    <svg class={rising ? "line up" : "line down"} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={d} />
    </svg>
  )
}
