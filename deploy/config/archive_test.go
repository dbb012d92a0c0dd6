package config

import (
	"testing"

	"github.com/marketlog/marketlog/schemas"
)

// An archived log stays small in the embedded broker at any age. Of the topics without a near bound reference.raw.v1 must have eight days, and the others are small
// by themselves.
func TestAnArchivedLogStaysSmallInTheBroker(t *testing.T) {
	const most, small = 512 << 20, 8 << 20
	cfg := DefaultConfig()
	total := int64(0)
	for _, topic := range schemas.Topics {
		bounds := cfg.PartitionBounds(topic)
		total += bounds.Near * int64(topic.Partitions)
		if bounds.Near == bounds.Most && topic.EmbeddedBytes > small && topic.Name != schemas.TopicReferenceRaw {
			t.Errorf("%s stays in the broker up to %d bytes a partition: it has no near bound", topic.Name, bounds.Most)
		}
	}
	if total > most {
		t.Errorf("all near bounds together are %d bytes, want at most %d", total, int64(most))
	}
	cfg.Archive.Enabled = "false"
	for _, topic := range schemas.Topics {
		if bounds := cfg.PartitionBounds(topic); bounds.Near != bounds.Most {
			t.Errorf("%s: near bound %d without an archive, want all of %d", topic.Name, bounds.Near, bounds.Most)
		}
	}
}
