// Client of a Marketlog server: prices and where they come from, candles, yields, SQL, and the stream.
export { Client, type Options } from "./client.js"
export * from "./errors.js"
export type { Retry } from "./retry.js"
export { Rows, type FileFormat } from "./sql.js"
export { Stream, type Delivery, type Message, type StreamOptions } from "./stream.js"
export type * as types from "./types.js"
