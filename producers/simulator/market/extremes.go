package market

import (
	"cmp"
	"math"
	"slices"
)

// extremes are the highest and the lowest price since a coin was first traded, as logarithms, and when.
type extremes struct {
	// until is the first hour that is not in them.
	until           int64
	high, low       float64
	highAt, lowAt   int64
	highest, lowest int64 // the hours
}

// extremesAt are those up to the full hour before t.
func (n *Coin) extremesAt(t int64) extremes {
	until := FloorDiv(t, Hour)
	known := n.extremes.Load()
	if known != nil && known.until == until {
		return *known
	}
	from, e := n.Born/Hour, extremes{until: until, high: math.Inf(-1), low: math.Inf(1)}
	if known != nil && known.until < until {
		from, e = known.until, *known
		e.until = until
	}
	for _, sign := range []float64{1, -1} {
		s := search{asset: n.Asset, sign: sign, from: from, to: until, best: math.Inf(-1)}
		s.run()
		switch {
		case sign > 0 && s.best > e.high:
			e.high, e.highest = s.best, s.at
		case sign < 0 && -s.best < e.low:
			e.low, e.lowest = -s.best, s.at
		}
	}
	e.highAt, e.lowAt = n.Path.moment(e.highest, true), n.Path.moment(e.lowest, false)
	n.extremes.Store(&e)
	return e
}

// search finds the hour with the greatest extreme among those from from to to. It bounds the walk in blocks of
// 4^k hours and looks into those only that may hold it: of the octaves as slow as the block, each runs from
// its value at one end to that at the other, and of the faster ones the reach is known.
type search struct {
	asset    *Asset
	sign     float64 // 1 seeks the highest, -1 the lowest
	from, to int64
	best     float64 // times sign
	at       int64
}

// coarsest are the blocks that a search begins with: 43 days.
const coarsest = 5

type block struct {
	start int64
	bound float64
}

func (s *search) run() {
	step := int64(1) << (2 * coarsest)
	var blocks []block
	for start := FloorDiv(s.from, step) * step; start < s.to; start += step {
		blocks = append(blocks, block{start, s.bound(start, coarsest)})
	}
	s.visit(blocks, coarsest)
}

// visit looks into blocks of 4^k hours, the most promising first. Of equal extremes it may find any, but
// always the same.
func (s *search) visit(blocks []block, k int) {
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Or(cmp.Compare(b.bound, a.bound), cmp.Compare(a.start, b.start)) })
	for _, b := range blocks {
		switch {
		case b.bound < s.best:
			return
		case k == 0:
			s.look(b.start)
		default:
			var parts [4]block
			step := int64(1) << (2 * (k - 1))
			inside := parts[:0]
			for start := b.start; start < b.start+4*step; start += step {
				if start+step > s.from && start < s.to {
					inside = append(inside, block{start, s.bound(start, k-1)})
				}
			}
			s.visit(inside, k-1)
		}
	}
}

// look takes one hour.
func (s *search) look(index int64) {
	x := 0.0
	for a := s.asset; a != nil; a = a.Parent {
		h := a.Path.newHour(index, a.Path.Walk(index))
		if s.sign > 0 {
			x += h.high
		} else {
			x -= h.low
		}
	}
	if x > s.best || x == s.best && index < s.at {
		s.best, s.at = x, index
	}
}

// bound is what the extreme of the block's hours cannot pass, times sign.
func (s *search) bound(start int64, k int) float64 {
	x := 0.0
	for a := s.asset; a != nil; a = a.Parent {
		low, high := a.Path.bounds(start, k)
		if s.sign > 0 {
			x += high
		} else {
			x -= low
		}
	}
	return x
}

// bounds are what the log price of the 4^k hours from start stays between.
func (p *Path) bounds(start int64, k int) (low, high float64) {
	end := start + 1<<(2*k)
	first, last := p.drift*float64(start-driftFrom), p.drift*float64(end-driftFrom)
	low, high = min(first, last), max(first, last)
	for _, f := range p.factors {
		l, h := f.Seed.noiseBounds(start, k, p.octaves)
		low, high = low+f.Weight*dayShare*l, high+f.Weight*dayShare*h
	}
	level, beyond := math.Log(p.level), p.sigmaHour*beyondHour
	return level + low - beyond, level + high + beyond
}

// noiseBounds are what noise stays between over 4^k steps, both ends included.
func (s Seed) noiseBounds(start int64, k, to int) (low, high float64) {
	for i, o := range octaves[:to+1] {
		if i < k {
			reach := o.amplitude * (1 << 52)
			low, high = low-reach, high+reach
			continue
		}
		a, b := s.octaveAt(i, start), s.octaveAt(i, start+1<<(2*k))
		low, high = low+min(a, b), high+max(a, b)
	}
	return low, high
}

// octaveAt is what one octave of noise adds at a step.
func (s Seed) octaveAt(k int, step int64) float64 {
	o := octaves[k]
	node := step >> (2 * k)
	x := float64(step-node<<(2*k)) * o.frequency
	octave := s + Seed(k)<<56
	a := float64(octave.At(node) >> 11)
	if x == 0 {
		return o.amplitude * (a - 1<<52)
	}
	b := float64(octave.At(node+1) >> 11)
	return o.amplitude * (a + (b-a)*x*x*(3-2*x) - 1<<52)
}

// moment is when the path is at its highest or lowest within an hour.
func (p *Path) moment(index int64, highest bool) int64 {
	h := p.newHour(index, p.Walk(index))
	at := h.secondAt
	if (h.first == h.high) == highest {
		at = h.firstAt
	}
	return index*Hour + at*lattice
}
