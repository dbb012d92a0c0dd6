package market

import (
	"math"
	"sync/atomic"
)

// Times are Unix nanoseconds. A path is a straight line between the points of a lattice of two seconds,
// so that the extremes over whole seconds of an even number are those of its points.
const (
	Second  = int64(1e9)
	Minute  = 60 * Second
	Hour    = 3600 * Second
	Day     = 24 * Hour
	lattice = 2 * Second

	latticeInHour = Hour / lattice

	// HourOctaves is the last octave of the walk over hours: 4^7 hours are almost two years.
	HourOctaves = 7
	// fineOctaves is that of the walk within an hour: 4^4 lattice steps are nine minutes.
	fineOctaves = 4
	// fineSeed keeps the walk within an hour apart from that over hours.
	fineSeed Seed = 0x5bd1e995
)

// Factor is a source of moves that many paths share. Weights are standard deviations of a day, in log price.
type Factor struct {
	Seed   Seed
	Weight float64
}

// Path is a positive price as a function of time: level times the exponential of a walk.
//
// Its values at full hours come from a walk of their own. Within an hour it runs from one to the next by
// way of a highest and a lowest point that the hour draws, and never leaves the range between them: the
// candle of an hour is known without its minutes, that of a minute agrees with its hour's.
type Path struct {
	seed    Seed
	level   float64
	factors []Factor
	// octaves bounds the walk over hours; few of them keep it near its level.
	octaves int
	// drift is what log price gains in an hour.
	drift float64
	// sigmaHour is the standard deviation of an hour's move.
	sigmaHour float64

	// The newest hours and lattice segments asked for: whoever follows the market asks for the same ones again.
	hours    [4]atomic.Pointer[hourPath]
	segments [8]atomic.Pointer[segment]
}

// hourPath is an hour of a path, in log price. Points are lattice steps within the hour.
type hourPath struct {
	index                  int64
	open, high, low, close float64
	// The two extremes in the order in which they come.
	firstAt, secondAt int64
	first, second     float64
}

type segment struct {
	index    int64
	from, to float64
}

// NewPath is a price around level, moved by factors.
func NewPath(s Seed, level float64, octaves int, factors ...Factor) *Path {
	p := &Path{seed: s, level: level, factors: factors, octaves: octaves}
	variance := 0.0
	for _, f := range factors {
		variance += float64(f.Weight * f.Weight)
	}
	p.sigmaHour = math.Sqrt(variance / 24)
	return p
}

// driftFrom is when drifts begin to count.
const driftFrom = 1_640_995_200 * Second / Hour // 2022

// Walk is the log price at a full hour.
func (p *Path) Walk(index int64) float64 {
	x := math.Log(p.level) + p.drift*float64(index-driftFrom)
	for _, f := range p.factors {
		x += float64(f.Weight * dayShare * f.Seed.Noise(index, p.octaves))
	}
	return x
}

// Moves of a day's standard deviation, for walks whose steps are an hour and two seconds.
var (
	dayShare  = math.Sqrt(1.0 / 24)
	fineShare = math.Sqrt(float64(lattice) / float64(Day))
)

func (p *Path) hour(index int64) *hourPath {
	cached := &p.hours[index&int64(len(p.hours)-1)]
	if h := cached.Load(); h != nil && h.index == index {
		return h
	}
	var h *hourPath
	if before := p.hours[(index-1)&int64(len(p.hours)-1)].Load(); before != nil && before.index == index-1 {
		h = p.newHour(index, before.close)
	} else {
		h = p.newHour(index, p.Walk(index))
	}
	cached.Store(h)
	return h
}

// beyondHour is how far an hour's extremes may lie beyond its ends, in standard deviations of its move.
const beyondHour = 0.1 + 0.2*2*2

// newHour draws an hour that opens at a log price.
func (p *Path) newHour(index int64, open float64) *hourPath {
	h := &hourPath{index: index, open: open, close: p.Walk(index + 1)}
	// What moves the most paths shapes the hour of each: highs and lows come together, within two minutes.
	shape := p.factors[0].Seed
	up, down := shape.Unit(4*index)+p.seed.Unit(2*index), shape.Unit(4*index+1)+p.seed.Unit(2*index+1)
	h.high = max(h.open, h.close) + p.sigmaHour*(0.1+float64(0.2*up*up))
	h.low = min(h.open, h.close) - p.sigmaHour*(0.1+float64(0.2*down*down))
	// The extremes lie in different halves of the hour, away from its ends.
	own := int64(p.seed.At(index) % 60)
	h.firstAt = 30 + own + int64(shape.Unit(4*index+2)*float64(latticeInHour/2-120))
	h.secondAt = latticeInHour/2 + 30 + own + int64(shape.Unit(4*index+3)*float64(latticeInHour/2-120))
	h.first, h.second = h.low, h.high
	if shape.At(index)&1 == 0 {
		h.first, h.second = h.high, h.low
	}
	return h
}

// point is the log price at a lattice step since 1970.
func (p *Path) point(step int64) float64 {
	return p.within(p.hour(FloorDiv(step, latticeInHour)), step)
}

// within is the log price at a lattice step of an hour.
func (p *Path) within(h *hourPath, step int64) float64 {
	at := step - h.index*latticeInHour
	a, b, from, to := int64(0), h.firstAt, h.open, h.first
	switch {
	case at >= h.secondAt:
		a, b, from, to = h.secondAt, latticeInHour, h.second, h.close
	case at >= h.firstAt:
		a, b, from, to = h.firstAt, h.secondAt, h.first, h.second
	}
	if at == a {
		return from
	}
	share := float64(at-a) / float64(b-a)
	x := from + float64((to-from)*share)
	rough := 0.0
	for _, f := range p.factors {
		rough += float64(f.Weight * (f.Seed^fineSeed).Noise(step, fineOctaves))
	}
	x += float64(rough * fineShare * 4 * share * (1 - share))
	return reflect(x, h.low, h.high)
}

// reflect folds x into [low, high].
func reflect(x, low, high float64) float64 {
	width := high - low
	if width <= 0 {
		return low
	}
	x = math.Mod(x-low, 2*width)
	if x < 0 {
		x += 2 * width
	}
	if x > width {
		x = 2*width - x
	}
	return low + x
}

// At is the price at any time.
func (p *Path) At(t int64) float64 {
	index := FloorDiv(t, lattice)
	cached := &p.segments[index&int64(len(p.segments)-1)]
	s := cached.Load()
	if s == nil || s.index != index {
		s = &segment{index: index}
		if before := p.segments[(index-1)&int64(len(p.segments)-1)].Load(); before != nil && before.index == index-1 {
			s.from = before.to
		} else {
			s.from = math.Exp(p.point(index))
		}
		s.to = math.Exp(p.point(index + 1))
		cached.Store(s)
	}
	return s.from + float64((s.to-s.from)*float64(t-index*lattice)/float64(lattice))
}

// span is open, high, low and close over a time.
type span struct{ open, high, low, close float64 }

// over folds the path over [from, to), to the lattice; whole hours cost no more than their two ends.
func (p *Path) over(from, to int64) span {
	step, end := FloorDiv(from, lattice), FloorDiv(to, lattice)
	first, last := p.point(step), p.point(end)
	high, low := max(first, last), min(first, last)
	for step <= end {
		if step%latticeInHour == 0 && step+latticeInHour <= end {
			h := p.hour(FloorDiv(step, latticeInHour))
			high, low = max(high, h.high), min(low, h.low)
			step += latticeInHour
			continue
		}
		x := p.point(step)
		high, low = max(high, x), min(low, x)
		step++
	}
	return span{math.Exp(first), math.Exp(high), math.Exp(low), math.Exp(last)}
}

// FloorDiv is a/b rounded down; b is positive.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
