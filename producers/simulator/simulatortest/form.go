// Package simulatortest compares what is simulated with what was recorded, and has the clocks of the simulator's tests.
package simulatortest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Trait is how a value at a path is spelled, over all messages.
type Trait struct {
	count int
	types map[string]int
	// Of numbers, and of strings that are numbers: the lengths of their fractions, how many fractions end
	// in 0, and the unit if they can be times.
	numeric   int
	fractions map[int]int
	zeros     int
	Exponents int
	units     map[string]int
	// values are the first few different ones.
	values map[string]bool
	// Patterns of other strings that hold digits only between punctuation: times.
	Patterns map[string]int
}

// Traits describes decoded messages by the paths of their values. keyed are paths of objects whose keys are names.
func Traits(messages []any, keyed []string) map[string]*Trait {
	traits := map[string]*Trait{}
	for _, m := range messages {
		describe(traits, "", m, keyed)
	}
	return traits
}

func describe(traits map[string]*Trait, path string, value any, keyed []string) {
	tr := traits[path]
	if tr == nil {
		tr = &Trait{types: map[string]int{}, values: map[string]bool{}, fractions: map[int]int{}, units: map[string]int{}, Patterns: map[string]int{}}
		traits[path] = tr
	}
	tr.count++
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v := value.(type) {
	case map[string]any:
		tr.types["object"]++
		for key, inner := range v {
			if slices.Contains(keyed, path) && key != "last" {
				key = "*"
			}
			describe(traits, join(key), inner, keyed)
		}
	case []any:
		tr.types["array"]++
		for i, inner := range v {
			at := path + "[]"
			switch inner.(type) {
			case map[string]any, []any:
			default:
				at = fmt.Sprintf("%s[%d]", path, min(i, 12))
			}
			describe(traits, at, inner, keyed)
		}
	case json.Number:
		tr.types["number"]++
		tr.number(v.String())
	case string:
		tr.types["string"]++
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			tr.number(v)
		} else if pattern, ok := timePattern(v); ok {
			tr.Patterns[pattern]++
		}
	case bool:
		tr.types["bool"]++
	case nil:
		tr.types["null"]++
	}
}

func (tr *Trait) number(text string) {
	tr.numeric++
	if len(tr.values) < 5 {
		tr.values[text] = true
	}
	if strings.ContainsAny(text, "eE") {
		tr.Exponents++
		return
	}
	_, fraction, _ := strings.Cut(text, ".")
	tr.fractions[len(fraction)]++
	if strings.HasSuffix(fraction, "0") {
		tr.zeros++
	}
	x, _ := strconv.ParseFloat(text, 64)
	unit := "no time"
	for name, perSecond := range map[string]float64{"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9} {
		if x > 1.2e9*perSecond && x < 2.5e9*perSecond {
			unit = name
		}
	}
	tr.units[unit]++
}

// timePattern spells every digit 0, if the text is a date or a time of day.
func timePattern(text string) (string, bool) {
	digits := 0
	pattern := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			digits++
			return '0'
		}
		return r
	}, text)
	return pattern, digits >= 8 && strings.Contains(pattern, "00:00") || strings.HasPrefix(pattern, "0000-00-00")
}

// Compare returns where what is simulated is not spelled as what was recorded. newer are paths that the recording is too old for,
// older those that exist no more, counters those of numbers that happened to be as large as times.
func Compare(recorded, answered map[string]*Trait, newer, older []string, counters ...string) (faults []string) {
	fault := func(path, format string, a ...any) { faults = append(faults, path+" "+fmt.Sprintf(format, a...)) }
	for _, path := range slices.Sorted(maps.Keys(recorded)) {
		r, s := recorded[path], answered[path]
		if s == nil {
			if !slices.Contains(older, path) && r.count >= holders(recorded, path) && !strings.HasSuffix(path, "]") {
				fault(path, "is always in the recording, never simulated")
			}
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(s.types)) {
			if r.types[kind] == 0 {
				fault(path, "is a %s, recorded are %v", kind, slices.Sorted(maps.Keys(r.types)))
			}
		}
		if r.numeric == r.types["string"]+r.types["number"] && s.numeric != s.types["string"]+s.types["number"] {
			fault(path, "is not always a number")
		}
		if r.Exponents == 0 && s.Exponents > 0 {
			fault(path, "has an exponent")
		}
		times := r.units["no time"] == 0 && !slices.Contains(counters, path)
		if times && r.numeric > 0 {
			for unit := range s.units {
				if r.units[unit] == 0 {
					fault(path, "is in %q, recorded in %v", unit, slices.Sorted(maps.Keys(r.units)))
				}
			}
		}
		// Shorter ones may be those of the one market that was recorded.
		padded := len(r.fractions) == 1 && r.zeros > 0 && r.fractions[8]+r.fractions[18] > 0
		if padded && r.numeric >= 3 && !slices.Equal(slices.Collect(maps.Keys(r.fractions)), slices.Collect(maps.Keys(s.fractions))) {
			fault(path, "has fractions of %v digits, recorded always %v", slices.Sorted(maps.Keys(s.fractions)), slices.Sorted(maps.Keys(r.fractions)))
		}
		if r.numeric >= 20 && r.zeros == 0 && s.zeros > 0 && !times {
			fault(path, "has %d of %d fractions that end in 0, recorded none of %d", s.zeros, s.numeric, r.numeric)
		}
		if r.zeros*10 > r.numeric && r.numeric >= 20 && s.zeros == 0 && s.numeric >= 50 && len(s.values) >= 5 && !times {
			fault(path, "has no fraction that ends in 0, recorded are %d of %d", r.zeros, r.numeric)
		}
		for pattern := range s.Patterns {
			if r.Patterns[pattern] == 0 {
				fault(path, "is spelled %s, recorded %v", pattern, slices.Sorted(maps.Keys(r.Patterns)))
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(answered)) {
		if recorded[path] == nil && !slices.ContainsFunc(newer, func(n string) bool { return path == n || strings.HasPrefix(path, n) }) && !inList(recorded, path) {
			fault(path, "is simulated, never recorded")
		}
	}
	return faults
}

// holders counts the objects that could have had the key at the end of a path.
func holders(traits map[string]*Trait, path string) int {
	i := strings.LastIndexByte(path, '.')
	if tr := traits[path[:max(i, 0)]]; tr != nil {
		return tr.types["object"]
	}
	return 0
}

// inList reports whether a path is a further element of a recorded list of plain values.
func inList(traits map[string]*Trait, path string) bool {
	i := strings.LastIndexByte(path, '[')
	return i >= 0 && strings.HasSuffix(path, "]") && traits[path[:i]+"[0]"] != nil && traits[path[:i]].types["array"] > 0 &&
		traits[path[:i]+"[1]"] != nil && cmp.Compare(len(traits[path[:i]+"[0]"].types), 1) == 0
}
