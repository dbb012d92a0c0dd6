package producers

// Standing reports how the format of what a feed sends is known.
type Standing string

// Standings, the best first.
const (
	// IsRecorded: a test decodes what the provider really sent.
	IsRecorded Standing = "recorded"
	// IsDocumented: the provider's own documentation was read, and nothing was recorded.
	IsDocumented Standing = "documented"
	// IsGuessed: the provider documents nothing, or it could not be read; the format is what other clients read.
	IsGuessed Standing = "guessed"
)

// Evidence is how the format of a feed is known.
type Evidence struct {
	Standing Standing
	// Page is the documentation that was read; of a guessed format, the public code of a client that reads it.
	Page string
	// Clients are pages with the public code of clients, independent of Page and of each other, that read the same fields with the
	// same names, types, units and order; empty where none was read.
	Clients []string
	// Sought are the searches that found no more clients, where fewer than two were found; empty where there are two. A guessed
	// format's Page counts as a client.
	Sought string
	// Recording is what the provider sent, a file below MARKETLOG_RECORDINGS; recorded formats only.
	Recording string
	// Unconfirmed reports what of the format could not be confirmed; empty if nothing is known to be open.
	Unconfirmed string
}

// Recorded is the evidence of a format of which a test decodes a recording, a file below MARKETLOG_RECORDINGS.
func Recorded(file string) Evidence { return Evidence{Standing: IsRecorded, Recording: file} }

// Documented is the evidence of a format that was read on a page of the provider's documentation.
func Documented(page string) Evidence { return Evidence{Standing: IsDocumented, Page: page} }

// Guessed is the evidence of a format that was read in the public code of a client.
func Guessed(client string) Evidence { return Evidence{Standing: IsGuessed, Page: client} }

// And adds the public code of clients that read the format alike.
func (e Evidence) And(clients ...string) Evidence {
	e.Clients = clients
	return e
}

// AfterSearching adds what was searched for without finding a second client, or any.
func (e Evidence) AfterSearching(sought string) Evidence {
	e.Sought = sought
	return e
}

// ReadBy is how many independent clients were read that read the format alike.
func (e Evidence) ReadBy() int {
	if e.Standing == IsGuessed {
		return len(e.Clients) + 1
	}
	return len(e.Clients)
}

// But adds what could not be confirmed.
func (e Evidence) But(unconfirmed string) Evidence {
	e.Unconfirmed = unconfirmed
	return e
}

// VenueEvidence is how the formats of a venue are known. The zero value of a part means that the venue has no such part.
type VenueEvidence struct {
	// Markets is the list of instruments; Trades and Tickers are what the feed pushes; Polled are the tickers of the HTTP
	// interface; Candles are those of the past.
	Markets, Trades, Tickers, Polled, Candles Evidence
}
