// Package views holds in memory what the reading side answers from: the newest prices, the catalog of coins, yields, exchange
// rates and recent figures of the whole market. Each is filled from topics by Apply, in the order of the log, and read by
// many goroutines through snapshots that do not change. Nothing here knows of HTTP; what was longer ago is read from history.
package views
