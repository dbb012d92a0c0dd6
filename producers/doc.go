// Package producers holds what all readers of venues and sources share: their clock, request budgets, numbers as they are spelled,
// reasons for rejecting an input, and the evidence for each format. Readers of venues are in adapter and exchanges, those of polled
// sources in poll, fetch, answer, reference and yields, and the way into the log in outbox.
package producers
