// Package imports reads files with candles of venues' markets into the log, as backfill does with what venues themselves answer:
// archives that Binance publishes, files of tardis.dev, and plain CSV of candles or trades. Trades become candles of minutes. Every candle names its file, by
// hash, and its line.
//
// A file is read twice: first to the end without a record to the log, which shows whether its rows are what its name says and whether
// its prices are near to what is known; then its candles are written, market by market in the order of the file, and after the
// last of them, of each market, that they are all. How far an import came is in the log alone: ended anywhere and given again, it
// goes on after the last line that is there, and what comes of it equals that of one run. A file that is there is not read again.
package imports
