// Package ws streams prices over WebSocket. A client that sends nothing gets a welcome, a snapshot
// and, about once a second of log time in which something changed, one frame of changes that is
// encoded and deflated once for all such clients. Per coin, timestamps never go back and every
// change arrives: a client that reads slowly gets its changes merged per coin, never skipped and
// never at the cost of another client, and is closed when it stops reading. Each frame carries the
// epoch of the hub that made it and a sequence number that never goes back within it.
//
// Clients that ask for it follow other channels too, and every price: each element comes once over any number of connections,
// whichever replica serves them, or a gap says from when to when it does not. A channel is declared by a query.Channel.
package ws
