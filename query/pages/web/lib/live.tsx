// What the head of a page says of the stream.
import { render } from "preact"
import { age, clock, count, local } from "./format"
import { status } from "./stream"

function Live() {
  const { phase, at, lag, resumed } = status.value
  switch (phase) {
    case "ended":
      return <span class="ended">session over · <a href="">sign in</a></span>
    case "waiting":
      return <span class="waiting"><i class="dot" />{at ? `connecting again · last ${clock(at)}` : "connecting again"}</span>
    case "connecting":
      return <span class="waiting"><i class="dot" />connecting</span>
  }
  return (
    <span class="going"><i class="dot" />live <time title={local(at)}>{clock(at)}</time>{lag >= 0 && lag < 60_000 ? <span class="lag">{age(lag)}</span> : null}{resumed === undefined ? null : <span class="resumed" title="What was sent meanwhile has been made up for">resumed, {count(resumed)} s</span>}</span>
  )
}

export function mountLive(): void {
  const place = document.getElementById("live")
  if (place) render(<Live />, place)
}

// mount puts a page's content in the place of what the server wrote.
export function mount(content: preact.ComponentChild): void {
  const place = document.getElementById("app")
  if (!place) return
  place.replaceChildren()
  render(content, place)
  mountLive()
}
