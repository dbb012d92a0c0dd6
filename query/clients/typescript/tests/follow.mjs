// Prints each price of some coins as [coin, milliseconds, price], until it is ended: node follow.mjs PACKAGE SYMBOL…
import { pathToFileURL } from "node:url"

const [built, ...symbols] = process.argv.slice(2)
const { Client } = await import(pathToFileURL(built).href)
for await (const price of new Client().stream({ symbols, delivery: "all" })) console.log(JSON.stringify([price.coinId, price.timestamp, price.price]))
