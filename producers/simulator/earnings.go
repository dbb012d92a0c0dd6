package simulator

import (
	"math"
	"strconv"

	"github.com/marketlog/marketlog/schemas"
)

// earning is a rate of a year as a smooth function of time, as a fraction: a level times the exponential of walks that come
// back to zero. All rates of a kind share one of them, since they rise and fall with demand, those of a coin another.
type earning struct {
	level, swing float64
	walks        [3]seed
}

// Waves of earnings: how high they are, and that the longest ones take 4^4 hours, eleven days.
const (
	creditSwing    = 0.025
	stakingSwing   = 0.004
	earningOctaves = 4
)

// credit is what is earned or paid at a place for a coin that is lent.
func (w *world) credit(coin, place string, level float64) earning {
	own := w.seed.of("credit " + coin)
	return earning{level, creditSwing, [3]seed{w.seed.of("credit"), own, own.of(place)}}
}

// staked is what a coin that is staked earns at a place.
func (w *world) staked(coin, place string, level float64) earning {
	own := w.seed.of("staked " + coin)
	return earning{level, stakingSwing, [3]seed{w.seed.of("staked"), own, own.of(place)}}
}

func (e earning) at(t int64) float64 {
	hours := floorDiv(t, hour)
	from, to := e.walk(hours), e.walk(hours+1)
	return e.level * math.Exp(from+float64((to-from)*float64(t-hours*hour)/float64(hour)))
}

func (e earning) walk(hours int64) float64 {
	sum := 0.0
	for _, s := range e.walks {
		sum += s.noise(hours, earningOctaves)
	}
	return e.swing * sum
}

// borrowed is what a place charges for a coin: for the best-known coins little, for dollars as much as the market pays, for all
// others what they are worth to those who sell them short.
func (c *coin) borrowed(w *world, place string) earning {
	own := w.seed.of("cost of " + c.id)
	level := 0.04 + 0.12*own.unit(0)
	switch {
	case c.kind == schemas.KindStablecoin:
		level = 0.05 + 0.02*own.unit(0)
	case c.rank <= 12:
		level = 0.012 + 0.02*own.unit(0)
	}
	return w.credit(c.id, place, level)
}

// lentShare is what lenders get of what borrowers pay: the rest is the place's, or was paid for what lies idle.
func (c *coin) lentShare(w *world, place string) float64 {
	return 0.35 + 0.4*w.seed.of("use of "+c.id).of(place).unit(0)
}

// lends are the coins that exchanges lend, the best known first.
func (c *catalogue) lends(n int, now int64) []*coin {
	var list []*coin
	for _, k := range c.coins {
		if len(list) < n && k.listed(now) && !k.unpriced && !k.dead && k.kind != schemas.KindWrapped && k.kind != schemas.KindStaked {
			list = append(list, k)
		}
	}
	return list
}

// plain spells a number with so many digits and without an exponent.
func plain(x float64, n int) string { return strconv.FormatFloat(digits(x, n), 'f', -1, 64) }

// inPercent spells a fraction in percent, to the hundredth.
func inPercent(x float64) string {
	return strconv.FormatFloat(math.Round(x*1e4)/1e2, 'f', -1, 64) + "%"
}
