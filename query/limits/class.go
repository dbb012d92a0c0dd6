package limits

// Class reports which windows beside the plan's own a request counts in.
type Class uint8

// Classes of cost.
const (
	Plain Class = iota
	// Charts counts in the plan's window for charts too.
	Charts
)
