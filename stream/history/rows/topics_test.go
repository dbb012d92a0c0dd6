package rows

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/schematest"
)

// The rows of a topic go into the tables that its row of the topic table names, and into no other. Topics with one message
// share their rows.
func TestRowsGoIntoTheTablesOfTheTopicTable(t *testing.T) {
	named := map[string][]string{} // tables by message
	for _, topic := range schemas.Topics {
		for _, table := range topic.Tables {
			if !slices.Contains(named[topic.Message()], table.Name) {
				named[topic.Message()] = append(named[topic.Message()], table.Name)
			}
		}
	}
	for _, topic := range schemas.Topics {
		newRows := rowsOf[topic.Name]
		if len(topic.Tables) == 0 || newRows == nil {
			if len(topic.Tables) > 0 || newRows != nil {
				t.Errorf("%s: it has the tables %v, and that rows are made of it is %v", topic.Name, topic.Tables, newRows != nil)
			}
			continue
		}
		var got []string
		for _, r := range newRows().all() {
			got = append(got, r.Table())
		}
		want := slices.Clone(named[topic.Message()])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows go into %v, want %v", topic.Name, got, want)
		}
		record, err := schemas.DecodeRecord(topic.Name, schematest.Record(topic.Name, 1))
		if err != nil {
			t.Fatal(err)
		}
		var batch Batch
		batch.Add(Place{Topic: topic.Name}, record)
		rows := 0
		for _, r := range batch.all() {
			rows += r.Len()
		}
		project := topic.Name == schemas.TopicRates // its sample is not an entry
		if (batch.Len() == 0 || rows == 0) != project && topic.Name != schemas.TopicRatesRaw {
			t.Errorf("%s: a record has %d rows", topic.Name, rows)
		}
	}
	for topic := range rowsOf {
		if _, err := schemas.TopicNamed(topic); err != nil {
			t.Errorf("rows are made of %v", err)
		}
	}
}
