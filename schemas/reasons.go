package schemas

import "strings"

// Reason says why a message is in the dead letter and not among the ticks. The list is closed,
// so that refusals can be counted. A Reason is an error: wrap it with what was wrong.
type Reason string

// Reasons of the dead letter.
const (
	// Undecodable bytes are not what the venue documents.
	Undecodable Reason = "undecodable"
	// NotANumber is a price or size that is not a decimal number.
	NotANumber Reason = "not_a_number"
	// NonPositive is a price or size of zero or less.
	NonPositive Reason = "non_positive"
	// Absurd is a price outside 1e-18 to 1e12 in quote units, or a size above 1e18.
	Absurd Reason = "absurd"
	// Precision is more than 18 decimals: it would not be kept exactly.
	Precision Reason = "precision"
	// Future is an event time more than 10 s after ingest: real venues run 67 ms ahead.
	Future Reason = "future"
	// StaleSource is a trade that happened more than 10 min before ingest.
	StaleSource Reason = "stale_source"
	// RetiredAPI is a message of a generation of the venue's API that this adapter no longer reads.
	RetiredAPI Reason = "retired_api"
)

// Reasons is the closed list.
var Reasons = []Reason{Undecodable, NotANumber, NonPositive, Absurd, Precision, Future, StaleSource, RetiredAPI}

func (r Reason) Error() string { return string(r) }

// Flag marks a tick that is kept but not used as it is, or not at all. Flags add up.
type Flag uint32

// Flags of a tick.
const (
	// Crossed is a bid above the ask.
	Crossed Flag = 1 << iota
	// Late is a trade whose minute was closed before it arrived.
	Late
	// Unmapped is a market whose base no coin in the table answers to.
	Unmapped
	// NoRate is a quote asset without a fresh rate in USD.
	NoRate
	// NotSpot is a market of another kind: a future, a swap, an option.
	NotSpot
	// Repeat is a state equal to the one before it, or an event seen before.
	Repeat
	// Doubtful is a market that has the symbol of a coin and has not had its price for long: it is Unmapped too.
	Doubtful
	// Excluded is a tick that an operator's correction leaves out: it counts in nothing that is derived.
	Excluded
)

var flagNames = [...]string{"crossed", "late", "unmapped", "no_rate", "not_spot", "repeat", "doubtful", "excluded"}

// String lists the names of the flags that are set, in a fixed order, parted by commas.
func (f Flag) String() string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
