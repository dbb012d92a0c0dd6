package query

import (
	"strings"

	"github.com/marketlog/marketlog/query/views"
)

// CoinParam declares the parameter of an operation that names a coin.
func CoinParam(name string, in In, example string) Param {
	return Param{Name: name, In: in, Kind: Text, Required: in == Path, MaxLength: views.MaxName, Example: example,
		Doc: "Symbol or id of a coin, case-insensitive. If several coins match, the largest is used; a lower-case id of a coin that our venues trade " +
			"always means that coin, and the prefix `" + views.IDPrefix + "` forces an id."}
}

// NoCoin means that no coin has a name; the error suggests those that have nearly the same.
func NoCoin(snapshot *views.Snapshot, name string) *Error {
	e := NotFound("no coin has the symbol or id %q", strings.ToValidUTF8(name, "\uFFFD"))
	if near := snapshot.Near(name); len(near) > 0 {
		e.Candidates, e.Hint = near, "did you mean "+near[0].CoinID+"?"
	}
	return e
}
