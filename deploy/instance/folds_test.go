package instance

import (
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
)

// The topic table names who writes a derived topic, and each processor writes the topics that name it.
func TestDerivedTopicsNameTheirProcessor(t *testing.T) {
	written := map[string]string{}
	add := func(unit, topic string) {
		if other := written[topic]; other != "" {
			t.Errorf("%s is written by %s and by %s", topic, other, unit)
		}
		written[topic] = "processors/" + unit
	}
	seconds := quotes.Seconds(schemas.Coins(), schemas.NewSymbolOverrides(), nil, quotes.NewFixings())
	add(seconds.Name, seconds.Output)
	for _, unit := range []processors.Unit{PricesUnit(), resolve.Unit(schemas.Coins(), schemas.NewSymbolOverrides(), nil, resolve.NewRateTable(), resolve.NewConflictFilter())} {
		for _, route := range unit.Outputs {
			add(unit.Name, route.Topic)
		}
	}
	byMinutes := map[string]bool{}
	for _, m := range MinuteFolds() {
		add(m.Name, m.Output)
		byMinutes[m.Output] = true
	}
	for _, topic := range schemas.Topics {
		if topic.Derived && topic.Writer != written[topic.Name] {
			t.Errorf("the topic table has that %s is written by %s, want %s", topic.Name, topic.Writer, written[topic.Name])
		}
		if !topic.Derived && written[topic.Name] != "" {
			t.Errorf("%s is written by %s, and not a derived topic of the topic table", topic.Name, written[topic.Name])
		}
		if topic.Minutes != byMinutes[topic.Name] || topic.Seconds != (topic.Name == seconds.Output) {
			t.Errorf("%s: the topic table has seconds %v and minutes %v, want those of its fold", topic.Name, topic.Seconds, topic.Minutes)
		}
	}
}
