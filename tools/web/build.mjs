// Builds query/pages/dist from query/pages/web, or another folder: node build.mjs [FOLDER]. The same sources and versions give the
// same bytes, which the gate checks.
import { build } from "esbuild"
import { createHash } from "node:crypto"
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = resolve(here, "../..")
const web = join(root, "query/pages/web")
const out = resolve(process.argv[2] ?? join(root, "query/pages/dist"))
const pages = ["prices", "coin", "rates", "stablecoins", "market", "sql", "reference", "system", "signin"]

// Nothing may turn a text into an element or into code: what others write is shown as text.
const forbidden = /\b(dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|new Function)\b/
for (const name of await readdir(web, { recursive: true })) {
  if (!/\.tsx?$/.test(name)) continue
  const line = (await readFile(join(web, name), "utf8")).split("\n").findIndex((text) => forbidden.test(text))
  if (line >= 0) throw new Error(`${name}:${line + 1} turns text into elements or code`)
}

await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })

const made = await build({
  entryPoints: Object.fromEntries(pages.map((page) => [page, join(web, page + ".tsx")])),
  outdir: out,
  absWorkingDir: root,
  nodePaths: [join(here, "node_modules")],
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none", // licences.txt has them
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "shared-[hash]",
  metafile: true,
  logLevel: "warning",
})
const style = await build({ entryPoints: [join(web, "style.css")], bundle: true, minify: true, write: false, logLevel: "warning" })

async function keep(name, ending, content) {
  const file = `${name}-${createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase()}.${ending}`
  await writeFile(join(out, file), content)
  return file
}
const css = await keep("style", "css", style.outputFiles[0].contents)
const icon = await keep("icon", "svg", await readFile(join(web, "icon.svg")))

const manifest = { pages: {}, icon }
const packages = new Set()
for (const [file, output] of Object.entries(made.metafile.outputs)) {
  for (const input of Object.keys(output.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)
    if (found) packages.add(found[1])
  }
  if (!output.entryPoint) continue
  const imports = output.imports.filter((i) => i.kind === "import-statement").map((i) => basename(i.path)).sort()
  manifest.pages[basename(output.entryPoint, ".tsx")] = { script: basename(file), imports, style: css }
}
manifest.pages = Object.fromEntries(Object.entries(manifest.pages).sort(([a], [b]) => (a < b ? -1 : 1)))
await writeFile(join(out, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n")

// What others wrote, with what they ask to be said.
let licences = "The scripts of the pages contain the following works of others.\n"
for (const name of [...packages].sort()) {
  const folder = join(here, "node_modules", name)
  const { version, license, homepage } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
  licences += `\n${"=".repeat(78)}\n${name} ${version}, ${license}${homepage ? ", " + homepage : ""}\n${"=".repeat(78)}\n`
  for (const file of (await readdir(folder)).filter((f) => /^(licen[cs]e|notice)/i.test(f)).sort()) {
    licences += "\n" + (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim() + "\n"
  }
  if (name === "lightweight-charts") {
    licences += "\nTradingView Lightweight Charts™, Copyright (c) 2025 TradingView, Inc. https://www.tradingview.com/\n"
  }
}
await writeFile(join(out, "licences.txt"), licences)
if (!process.argv[2]) console.log((await readdir(out)).map((f) => relative(root, join(out, f))).join("\n"))
