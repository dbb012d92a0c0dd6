package instance

import (
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/defi"
	"github.com/marketlog/marketlog/processors/earn"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/schemas"
)

// PricesUnit is the chain from ticks of coins to prices and candles. It is also what a replay runs.
func PricesUnit() processors.Unit {
	raw, _ := schemas.TopicNamed(schemas.TopicTicksRaw)
	return processors.Unit{
		Name:  "prices",
		Input: schemas.TopicTicks,
		Outputs: []processors.Route{
			{Topic: schemas.TopicPrices, SamePartition: true},
			{Topic: schemas.TopicCandles, SamePartition: true},
		},
		New: func(int32) processors.Fold {
			return processors.Chain(median.New(schemas.Coins(), raw.Partitions), candles.New(raw.Partitions))
		},
	}
}

// MinuteFolds are all folds of log minutes. A replay runs them too.
func MinuteFolds() []*processors.Minutes {
	return []*processors.Minutes{markets.Minutes(schemas.Coins()), apy.Minutes(), defi.Minutes(), earn.Minutes(schemas.Coins())}
}
