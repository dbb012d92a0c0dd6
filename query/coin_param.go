package query

import "github.com/marketlog/marketlog/query/views"

// CoinParam declares the parameter of an operation that names a coin.
func CoinParam(name string, in In, example string) Param {
	return Param{Name: name, In: in, Kind: Text, Required: in == Path, MaxLength: views.MaxName, Example: example,
		Doc: "Symbol or id of a coin, in any letter case. Of several that have it the largest is meant; the id of a coin that venues are read for, " +
			"in lower case, means that coin, and `" + views.IDPrefix + "` before an id admits nothing else."}
}
