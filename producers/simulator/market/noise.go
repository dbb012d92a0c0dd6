package market

import "math"

// Seed names a source of chance. Whatever the simulator invents is a function of a seed and an index,
// so that any moment can be asked for without the moments before it.
type Seed uint64

// NewSeed is the seed of a number.
func NewSeed(n int64) Seed { return Seed(Mix(uint64(n))) }

// Of derives a seed for a part.
func (s Seed) Of(part string) Seed {
	h := uint64(s)
	for i := range len(part) {
		h = Mix(h ^ uint64(part[i]))
	}
	return Seed(Mix(h))
}

// At is 64 random bits.
func (s Seed) At(i int64) uint64 { return Mix(uint64(s) + uint64(i)*0x9e3779b97f4a7c15) }

// Unit is uniform in [0, 1).
func (s Seed) Unit(i int64) float64 { return float64(s.At(i)>>11) / (1 << 53) }

// Mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Noise adds value noise in octaves 0..to: octave k has a random value in [-1, 1) at every 4^k-th step,
// blended smoothly between, and the amplitude of a random walk over that time, the root of 4^k.
func (s Seed) Noise(step int64, to int) float64 {
	sum := 0.0
	for k, o := range octaves[:to+1] {
		node := step >> (2 * k)
		x := float64(step-node<<(2*k)) * o.frequency
		octave := s + Seed(k)<<56
		a := float64(octave.At(node) >> 11)
		b := float64(octave.At(node+1) >> 11)
		sum += o.amplitude * (a + float64((b-a)*x*x*(3-2*x)) - 1<<52)
	}
	return sum
}

type octave struct{ frequency, amplitude float64 }

// octaves are scaled so that their sum moves by about one in one step, as a random walk with steps of
// variance one.
var octaves = func() (all [9]octave) {
	for k := range all {
		period := float64(int64(1) << (2 * k))
		all[k] = octave{1 / period, 0.8 * math.Sqrt(period) / (1 << 52)}
	}
	return all
}()
