// Package adapter reads exchanges: a venue is declared as a Venue, with a Codec that turns its messages into events; everything
// else is the same for all of them and is done once, by an Exchange. That is connections and back-off, subscriptions in batches,
// request budgets, gaps in sequences and in time, markets that come and go, and events that become ticks with an id.
//
// socket.go holds a connection, exchange.go the markets and what becomes of events, redecode.go reads dead letters again.
package adapter
