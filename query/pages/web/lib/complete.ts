// What a statement may go on with at a place: names of views and columns, and keywords.

export interface View {
  name: string
  columns: { name: string; type: string; comment: string }[]
}

export interface Suggestion {
  text: string
  // note is what is shown beside it: the type of a column, or of what kind it is.
  note: string
}

export interface Completion {
  // from is where the word begins that a suggestion takes the place of.
  from: number
  list: Suggestion[]
}

const keywords = (
  "SELECT DISTINCT FROM WHERE PREWHERE GROUP BY HAVING ORDER LIMIT OFFSET WITH AS ON USING AND OR NOT IN LIKE ILIKE BETWEEN IS NULL CASE WHEN THEN ELSE END ASC DESC " +
  "JOIN INNER LEFT RIGHT FULL OUTER CROSS ASOF ANY UNION ALL EXCEPT INTERSECT INTERVAL ARRAY FINAL WINDOW OVER PARTITION ROWS FORMAT DESCRIBE SHOW EXPLAIN EXISTS " +
  "count sum avg min max uniq argMax argMin quantile median any groupArray countIf sumIf avgIf if coalesce now today toDate toDateTime toStartOfMinute toStartOfHour toStartOfDay " +
  "toFloat64 toString round abs arrayJoin length lagInFrame"
).split(" ")

// most are as many as are shown.
const most = 40

// plainly is the statement up to a place with texts and comments blanked, null within one of them: nothing is suggested there.
function plainly(before: string): string | null {
  const pieces = /'(?:[^'\\]|\\.|'')*'|--[^\n]*\n|\/\*[^]*?\*\//g
  const blank = before.replace(pieces, (piece) => " ".repeat(piece.length))
  return /'|--|\/\*/.test(blank) ? null : blank
}

// complete finds what the word at the cursor may become. Without a word it is everything that fits, for whoever asks by the keyboard. Columns are
// those of the views that the statement names, and of all where it names none.
export function complete(statement: string, cursor: number, views: View[]): Completion {
  const before = plainly(statement.slice(0, cursor))
  const from = cursor - (/[A-Za-z_][A-Za-z0-9_]*$/.exec(statement.slice(0, cursor))?.[0].length ?? 0)
  const none = { from, list: [] }
  if (before === null || /[0-9.]$/.test(before.slice(0, from)) && !/[A-Za-z_)]\.$/.test(before.slice(0, from))) return none
  const word = statement.slice(from, cursor).toLowerCase()
  const head = before.slice(0, from)
  const named = new Set(statement.match(/\bv_[a-z0-9_]+/g) ?? [])
  named.delete(statement.slice(from).match(/^\w*/)?.[0] ?? "")
  const asked = views.filter((v) => named.has(v.name))
  const columns = new Map<string, Suggestion>()
  for (const v of asked.length ? asked : views) {
    for (const c of v.columns) if (!columns.has(c.name)) columns.set(c.name, { text: c.name, note: asked.length > 1 || !asked.length ? `${c.type}, ${v.name}` : c.type })
  }
  const ofViews = views.map((v) => ({ text: v.name, note: "view" }))
  const ofKeywords = keywords.map((k) => ({ text: k, note: "" }))
  const fitting = /\.$/.test(head) ? [...columns.values()]
    : /\b(from|join|describe|table)\s+$/i.test(head) ? ofViews
    : [...columns.values(), ...ofViews, ...ofKeywords]
  return { from, list: fitting.filter((s) => s.text.toLowerCase().startsWith(word)).slice(0, most) }
}
