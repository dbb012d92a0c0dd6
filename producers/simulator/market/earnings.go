package market

import (
	"math"

	"github.com/marketlog/marketlog/schemas"
)

// Earning is a rate of a year as a smooth function of time, as a fraction: a level times the exponential of walks that come
// back to zero. All rates of a kind share one of them, since they rise and fall with demand, those of a coin another.
type Earning struct {
	level, Swing float64
	walks        [3]Seed
}

// Waves of earnings: how high they are, and that the longest ones take 4^4 hours, eleven days.
const (
	creditSwing    = 0.025
	stakingSwing   = 0.004
	EarningOctaves = 4
)

// Credit is what is earned or paid at a place for a coin that is lent.
func (w *World) Credit(coin, place string, level float64) Earning {
	own := w.Seed.Of("credit " + coin)
	return Earning{level, creditSwing, [3]Seed{w.Seed.Of("credit"), own, own.Of(place)}}
}

// Staked is what a coin that is staked earns at a place.
func (w *World) Staked(coin, place string, level float64) Earning {
	own := w.Seed.Of("staked " + coin)
	return Earning{level, stakingSwing, [3]Seed{w.Seed.Of("staked"), own, own.Of(place)}}
}

// At is the rate at a time in Unix nanoseconds.
func (e Earning) At(t int64) float64 {
	hours := FloorDiv(t, Hour)
	from, to := e.walk(hours), e.walk(hours+1)
	return e.level * math.Exp(from+float64((to-from)*float64(t-hours*Hour)/float64(Hour)))
}

func (e Earning) walk(hours int64) float64 {
	sum := 0.0
	for _, s := range e.walks {
		sum += s.Noise(hours, EarningOctaves)
	}
	return e.Swing * sum
}

// Borrowed is what a place charges for a coin: for the best-known coins little, for dollars as much as the market pays, for all
// others what they are worth to those who sell them short.
func (c *Coin) Borrowed(w *World, place string) Earning {
	own := w.Seed.Of("cost of " + c.ID)
	level := 0.04 + 0.12*own.Unit(0)
	switch {
	case c.Kind == schemas.KindStablecoin:
		level = 0.05 + 0.02*own.Unit(0)
	case c.Rank <= 12:
		level = 0.012 + 0.02*own.Unit(0)
	}
	return w.Credit(c.ID, place, level)
}

// LentShare is what lenders get of what borrowers pay: the rest is the place's, or was paid for what lies idle.
func (c *Coin) LentShare(w *World, place string) float64 {
	return 0.35 + 0.4*w.Seed.Of("use of "+c.ID).Of(place).Unit(0)
}

// Lent are the coins that exchanges lend, the best known first.
func (c *Catalogue) Lent(n int, now int64) []*Coin {
	var list []*Coin
	for _, k := range c.Coins {
		if len(list) < n && k.Listed(now) && !k.Unpriced && !k.Dead && k.Kind != schemas.KindWrapped && k.Kind != schemas.KindStaked {
			list = append(list, k)
		}
	}
	return list
}
