package schemas_test

import (
	"testing"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/schemas/schematest"
)

// A record of each topic is decoded; nothing, noise, a part of it and a record of any other message is none.
func TestOnlyARecordOfItsTopicIsDecoded(t *testing.T) {
	for _, topic := range schemas.Topics {
		good := schematest.Record(topic.Name, 1)
		if _, err := schemas.DecodeRecord(topic.Name, good); err != nil {
			t.Errorf("%s: a record of it: %v", topic.Name, err)
		}
		for what, value := range schematest.Garbage(topic.Name) {
			if rec, err := schemas.DecodeRecord(topic.Name, value); err == nil {
				t.Errorf("%s: %s is decoded to %v", topic.Name, what, rec)
			}
		}
		for _, other := range schemas.Topics {
			if other.Message == topic.Message {
				continue
			}
			if rec, err := schemas.DecodeRecord(topic.Name, schematest.Record(other.Name, 1)); err == nil {
				t.Errorf("%s: a %s is decoded to %v", topic.Name, other.Message, rec)
			}
		}
	}
	if _, err := schemas.DecodeRecord("weather.v1", nil); err == nil {
		t.Error("a topic that is not in the table is decoded")
	}
}

// A mark that cannot be of an input would hide all records behind it.
func TestMarksOfNoInputAreRefused(t *testing.T) {
	pulse := &eventsv1.Pulse{Now: 5, Watermark: 4}
	for _, test := range []struct {
		name  string
		rec   eventsv1.Marked
		valid bool
	}{
		{"an offset", &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: 7, Offset: 1e9}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, true},
		{"none", &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a partition that no topic has", &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: 8}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a partition below zero", &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: -1}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a time for an offset", &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: 1764000000e9}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a second", &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{Offset: 1764000001e9}, Body: &eventsv1.QuoteRecord_Pulse{Pulse: pulse}}, true},
		{"an offset for a second", &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{Offset: 12345}, Body: &eventsv1.QuoteRecord_Pulse{Pulse: pulse}}, false},
		{"a control, which nothing caused", &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Control{Control: &eventsv1.Control{Action: "prepare"}}}, true},
	} {
		if err := schemas.CheckRecord(test.rec); (err == nil) != test.valid {
			t.Errorf("%s: got %v, want valid %v", test.name, err, test.valid)
		}
	}
}
