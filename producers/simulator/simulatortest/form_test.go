package simulatortest

import "testing"

// The comparison itself sees what it is there for.
func TestComparisonSeesDifferences(t *testing.T) {
	recorded := `{"id":1,"p":"1.50000000","t":1700000000000,"at":"2021-04-17T16:43:37.089723Z","q":["a","b"],"n":{"x":1}}`
	for name, test := range map[string]struct {
		answered string
		faults   int
	}{
		"same":           {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c","d","e"],"n":{"x":2}}`, 0},
		"missing key":    {`{"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"further key":    {`{"id":2,"z":0,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"number":         {`{"id":2,"p":7.25000000,"t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"unit":           {`{"id":2,"p":"7.25000000","t":1800000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"digits of time": {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.001Z","q":["c"],"n":{"x":2}}`, 1},
		"inner":          {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":"2"}}`, 1},
		"decimals":       {`{"id":2,"p":"7.2","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
	} {
		r := [][]byte{[]byte(recorded), []byte(recorded), []byte(recorded)}
		faults := Compare(Traits(Parse(t, r, nil), nil), Traits(Parse(t, [][]byte{[]byte(test.answered)}, nil), nil), nil, nil)
		if len(faults) != test.faults {
			t.Errorf("%s: got %q, want %d faults", name, faults, test.faults)
		}
	}
}
