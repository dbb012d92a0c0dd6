package market

import (
	"strconv"
	"strings"
)

// The words that invented coins are named with: no coin of the table is called so.
var (
	tailAdjectives = strings.Fields(`Amber Azure Brisk Calm Cedar Coral Crimson Dusky Eager Fabled Feral Frosty Gentle Gilded
		Hazel Hidden Indigo Ivory Jade Keen Lively Lunar Mellow Misty Nimble Noble Ochre Opal Placid Proud Quiet Quick
		Rapid Rustic Sable Scarlet Silent Silver Solemn Sunny Swift Tawny Tidal Umber Velvet Vivid Wily Zesty`)
	tailNouns = strings.Fields(`Acorn Anchor Badger Beacon Beaver Birch Brook Canyon Comet Condor Cove Crane Dune Ember Falcon
		Fern Finch Fjord Fox Glade Grove Harbor Heron Ibex Island Jackal Kestrel Lagoon Lantern Lark Lynx Maple Marmot
		Meadow Moose Nettle Oak Orchid Osprey Otter Panda Pebble Pelican Pine Puffin Quarry Quill Raven Reef Ridge River
		Robin Sparrow Spruce Stork Summit Thistle Tiger Trout Walrus Willow Wolf Wren Yak`)
	tailEndings = []string{"", "Protocol", "Network", "Finance", "Inu", "AI", "DAO", "Swap"}
)

// tailNames is how many names there are; further ones are numbered.
var tailNames = len(tailAdjectives) * len(tailNouns) * len(tailEndings)

// tailStride is prime, so that neighbours are named differently and no name comes twice.
const tailStride = 9973

// InventedName is the name of the i-th invented coin and what it would be traded as.
func InventedName(i int) (name, symbol string) {
	n := i * tailStride % tailNames
	adjective, n := tailAdjectives[n%len(tailAdjectives)], n/len(tailAdjectives)
	noun, n := tailNouns[n%len(tailNouns)], n/len(tailNouns)
	name, symbol = adjective+" "+noun, adjective[:1]+noun[:min(len(noun), 3)]
	if ending := tailEndings[n]; ending != "" {
		name, symbol = name+" "+ending, symbol+ending[:1]
	}
	if round := i / tailNames; round > 0 {
		name += " " + strconv.Itoa(round+1)
	}
	return name, strings.ToUpper(symbol)
}

// Slug spells a name as sources spell their ids: small letters, digits and dashes.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
