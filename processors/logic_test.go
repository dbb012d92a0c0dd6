package processors_test

import (
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
)

// Each topic that a fold derives has a logic version of its own, and no other topic has one.
func TestEveryDerivedTopicHasALogicVersion(t *testing.T) {
	for _, topic := range schemas.Topics {
		version := func() (version uint32) {
			defer func() { _ = recover() }()
			return processors.LogicVersion(topic.Name)
		}()
		bySink := topic.Name == schemas.TopicReferenceRawDead // whose letters are written by a sink
		if want := topic.Derived && !bySink; (version > 0) != want {
			t.Errorf("%s: the logic version is %d, and that a fold derives it is %v", topic.Name, version, want)
		}
	}
}
