package simulator

import "math"

// seed names a source of chance. Whatever the simulator invents is a function of a seed and an index,
// so that any moment can be asked for without the moments before it.
type seed uint64

// of derives a seed for a part.
func (s seed) of(part string) seed {
	h := uint64(s)
	for i := range len(part) {
		h = mix(h ^ uint64(part[i]))
	}
	return seed(mix(h))
}

// at is 64 random bits.
func (s seed) at(i int64) uint64 { return mix(uint64(s) + uint64(i)*0x9e3779b97f4a7c15) }

// unit is uniform in [0, 1).
func (s seed) unit(i int64) float64 { return float64(s.at(i)>>11) / (1 << 53) }

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// noise adds value noise in octaves 0..to: octave k has a random value in [-1, 1) at every 4^k-th step,
// blended smoothly between, and the amplitude of a random walk over that time, the root of 4^k.
func (s seed) noise(step int64, to int) float64 {
	sum := 0.0
	for k, o := range octaves[:to+1] {
		node := step >> (2 * k)
		x := float64(step-node<<(2*k)) * o.frequency
		octave := s + seed(k)<<56
		a := float64(octave.at(node) >> 11)
		b := float64(octave.at(node+1) >> 11)
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
