package schemas_test

import (
	"testing"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/schemas/schematest"
)

// A record of each topic is decoded; nothing, noise, a part of it and a record of any other message is not.
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
			if other.Message() == topic.Message() {
				continue
			}
			if rec, err := schemas.DecodeRecord(topic.Name, schematest.Record(other.Name, 1)); err == nil {
				t.Errorf("%s: a %s is decoded to %v", topic.Name, other.Message(), rec)
			}
		}
	}
	if _, err := schemas.DecodeRecord("weather.v1", nil); err == nil {
		t.Error("a topic that is not in the table is decoded")
	}
}

// A mark that cannot be of an input would hide all records after it.
func TestMarksOfNoInputAreRefused(t *testing.T) {
	pulse := &eventsv1.Pulse{Now: 5, Watermark: 4}
	correction := &eventsv1.EarnFixing{Date: "2026-01-06", Segment: schemas.EarnOverall, Revision: 1, Supersedes: "2026-01-06/overall/0"}
	for _, test := range []struct {
		name, topic string
		rec         eventsv1.Marked
		valid       bool
	}{
		{"an offset", schemas.TopicPrices, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: 7, Offset: 1e9}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, true},
		{"none", schemas.TopicPrices, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a partition that no topic has", schemas.TopicPrices, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: 8}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a partition below zero", schemas.TopicPrices, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: -1}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a time for an offset", schemas.TopicPrices, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: 1764000000e9}, Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}, false},
		{"a second", schemas.TopicQuotes, &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{Offset: 1764000001e9}, Body: &eventsv1.QuoteRecord_Pulse{Pulse: pulse}}, true},
		{"an offset for a second", schemas.TopicQuotes, &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{Offset: 12345}, Body: &eventsv1.QuoteRecord_Pulse{Pulse: pulse}}, false},
		{"a control, which nothing caused", schemas.TopicPrices, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Control{Control: &eventsv1.Control{Action: "prepare"}}}, true},
		{"a letter of a producer", schemas.TopicReferenceRawDead, &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{Reason: "absurd"}}, true},
		{"a pulse among letters without its mark", schemas.TopicTicksRawDead, &eventsv1.DeadRecord{Pulse: pulse}, false},
		{"a correction, which an operator wrote", schemas.TopicEarn, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: correction}}, true},
		{"a fixing that corrects none", schemas.TopicEarn, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: &eventsv1.EarnFixing{Date: "2026-01-06"}}}, false},
		{"a variant without its mark", schemas.TopicEarn, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Variant{Variant: &eventsv1.EarnVariant{ProductId: "okx:tether:lending"}}}, false},
	} {
		topic, err := schemas.TopicNamed(test.topic)
		if err != nil {
			t.Fatal(err)
		}
		if err := topic.Check(test.rec); (err == nil) != test.valid {
			t.Errorf("%s: got %v, want valid %v", test.name, err, test.valid)
		}
	}
}

// Every topic that a replay makes rows of can hold its controls, and a record of it is found to be one.
func TestViewsHaveControls(t *testing.T) {
	control := &eventsv1.Control{Action: "prepare", View: schemas.ViewAll}
	for _, view := range schemas.Views() {
		topics := schemas.ViewTopics(view)
		if len(topics) == 0 {
			t.Errorf("view %s has no topics", view)
		}
		for _, topic := range topics {
			if view == schemas.ViewReference {
				continue // it is only compared, so nobody writes one
			}
			rec, err := topic.NewControl(control)
			if err != nil {
				t.Errorf("view %s: %v", view, err)
				continue
			}
			if got := schemas.ControlOf(rec); got.GetAction() != control.Action || got.GetView() != control.View {
				t.Errorf("%s: got control %v, want %v", topic.Name, got, control)
			}
			if err := topic.Check(rec); err != nil {
				t.Errorf("%s: a control: %v", topic.Name, err)
			}
		}
	}
	if topics := schemas.ViewTopics("weather"); topics != nil {
		t.Errorf("a view that there is none of has topics %v", topics)
	}
	keys, _ := schemas.TopicNamed(schemas.TopicKeys)
	if rec, err := keys.NewControl(control); err == nil {
		t.Errorf("got %v for a control among keys, whose message has none", rec)
	}
}
