// The list of what the word at the cursor of the box may become. It opens after two letters, or with Ctrl and space; the arrows choose, Enter and
// Tab take, Escape closes.
import { signal } from "@preact/signals"
import { render } from "preact"
import { complete, type Completion, type View } from "./lib/complete"
import { plain } from "./lib/format"

const enough = 2

export function completeIn(box: HTMLTextAreaElement, views: () => View[]): void {
  const open = signal<Completion | undefined>(undefined)
  const chosen = signal(0)
  const place = document.createElement("div")
  place.className = "completion"
  box.after(place)

  function close(): void {
    open.value = undefined
    box.removeAttribute("aria-activedescendant")
  }

  function choose(at: number): void {
    const many = open.peek()?.list.length ?? 0
    if (!many) return
    chosen.value = (at + many) % many
    box.setAttribute("aria-activedescendant", "completion-" + chosen.value)
  }

  // look opens the list where there is something to choose; asked means by the keyboard, not by typing.
  function look(asked: boolean): void {
    const cursor = box.selectionStart
    if (cursor !== box.selectionEnd) return close()
    const found = complete(box.value, cursor, views())
    const word = box.value.slice(found.from, cursor)
    const done = found.list.some((s) => s.text.toLowerCase() === word.toLowerCase())
    if (!found.list.length || !asked && (word.length < enough || done || /^\w/.test(box.value.slice(cursor)))) return close()
    open.value = found
    choose(0)
    const at = caret(box, found.from)
    place.style.top = box.offsetTop + at.bottom + "px"
    place.style.left = Math.max(box.offsetLeft, Math.min(box.offsetLeft + at.left, box.offsetLeft + box.clientWidth - place.offsetWidth)) + "px"
  }

  function take(at: number): void {
    const found = open.peek()
    const word = found?.list[at]
    if (!found || !word) return
    box.setRangeText(word.text, found.from, box.selectionStart, "end")
    box.focus()
    close()
  }

  function List() {
    const list = open.value?.list ?? []
    return (
      <>
        <p class="hidden" role="status">{list.length ? `${list.length} suggestions` : ""}</p>
        <ul id="completion" role="listbox" aria-label="Suggestions" hidden={!list.length}>
          {list.map((s, i) => (
            <li key={s.text} id={"completion-" + i} role="option" aria-selected={i === chosen.value} ref={(e) => { if (i === chosen.value) e?.scrollIntoView({ block: "nearest" }) }}
              onMouseDown={(e) => { e.preventDefault(); take(i) }}>
              <code>{s.text}</code> <span class="dim small">{plain(s.note)}</span>
            </li>
          ))}
        </ul>
      </>
    )
  }
  render(<List />, place)

  box.setAttribute("aria-autocomplete", "list")
  box.setAttribute("aria-controls", "completion")
  box.addEventListener("input", (e) => ((e as InputEvent).isComposing ? undefined : look(false)))
  box.addEventListener("blur", close)
  box.addEventListener("scroll", close)
  box.addEventListener("click", close)
  box.addEventListener("keydown", (e) => {
    if (e.key === " " && e.ctrlKey) {
      e.preventDefault()
      look(true)
      return
    }
    if (!open.peek() || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return
    switch (e.key) {
      case "ArrowDown": choose(chosen.peek() + 1); break
      case "ArrowUp": choose(chosen.peek() - 1); break
      case "Enter":
      case "Tab": take(chosen.peek()); break
      case "Escape": close(); break
      case "ArrowLeft":
      case "ArrowRight":
      case "Home":
      case "End": close(); return
      default: return
    }
    e.preventDefault()
  })
}

// caret is where a place of the text is seen, from the upper left corner of the box: a copy that wraps as the box does is measured.
function caret(box: HTMLTextAreaElement, at: number): { left: number; bottom: number } {
  const copy = document.createElement("div")
  const style = getComputedStyle(box)
  copy.className = "measured"
  for (const name of ["font", "padding", "border", "line-height", "box-sizing"]) copy.style.setProperty(name, style.getPropertyValue(name))
  copy.style.width = box.clientWidth + 2 + "px" // with its borders, without its scroll bar
  const mark = document.createElement("span")
  mark.textContent = box.value.slice(at) || " "
  copy.append(box.value.slice(0, at), mark)
  box.after(copy)
  const found = { left: mark.getClientRects()[0]!.left - copy.getBoundingClientRect().left, bottom: mark.getClientRects()[0]!.bottom - copy.getBoundingClientRect().top - box.scrollTop + 4 }
  copy.remove()
  return found
}
