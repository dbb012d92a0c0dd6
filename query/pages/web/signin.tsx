// Signing in with a key: it is sent once, for a session, and kept nowhere.
import { signal } from "@preact/signals"
import { render } from "preact"

const fault = signal("")
const busy = signal(false)

async function signIn(key: string): Promise<void> {
  busy.value = true
  fault.value = ""
  try {
    const answer = await fetch("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key }) })
    if (answer.ok) {
      location.replace(location.pathname.startsWith("/open/") ? "/" : location.href)
      return
    }
    const body = (await answer.json()) as { error?: { message?: string } }
    fault.value = body.error?.message ?? "the server answered " + answer.status
  } catch {
    fault.value = "the server cannot be reached"
  }
  busy.value = false
}

function SignIn() {
  return (
    <form class="signin" onSubmit={(e) => {
      e.preventDefault()
      const key = new FormData(e.currentTarget).get("key")
      if (typeof key === "string" && key.trim()) void signIn(key.trim())
    }}>
      <p>On the machine of the server, <code>marketlog open</code> prints a link that signs you in. Or use an API key:</p>
      <label>API key <input type="password" name="key" required autocomplete="off" spellcheck={false} placeholder="ck_live_…" /></label>
      <button type="submit" disabled={busy.value}>Sign in</button>
      <p class="fault" role="alert">{fault.value}</p>
      <p class="dim">This browser gets a session of 12 hours that ends with the key. The key itself is not kept. <a href="">Ask again without one</a></p>
    </form>
  )
}

const place = document.getElementById("signin")
if (place) {
  place.replaceChildren()
  render(<SignIn />, place)
}
