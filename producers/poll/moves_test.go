package poll_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/sources"
)

// steppedClock shows what it was set to.
type steppedClock struct{ at atomic.Int64 }

func (c *steppedClock) Now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (*steppedClock) After(time.Duration) <-chan time.Time { return nil }

// What sources serve moves within three times the time that they declare, or nobody would believe their health; and a
// frozen one reports the same.
func TestValuesMoveAsTheirSourcesDeclare(t *testing.T) {
	clock := &steppedClock{}
	clock.at.Store(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixNano()) // a Wednesday
	sim := simulatedSources(t, clock)
	for _, source := range sources.List() {
		if source.Moves == 0 {
			continue
		}
		t.Run(source.Slug, func(t *testing.T) {
			if source.Moves < source.Interval() || source.Moves > 48*time.Hour {
				t.Errorf("its values are expected to move every %s, it is read every %s: the health of 7 days cannot judge it", source.Moves, source.Interval())
			}
			url := sim.SourceURLs()[source.Slug]
			before := currentDigest(t, source, url, clock)
			clock.at.Add(int64(3 * source.Moves))
			if currentDigest(t, source, url, clock) == before {
				t.Errorf("it serves the same after three times %s", source.Moves)
			}
			if err := sim.SetFaults(source.Slug, provider.Faults{Frozen: true}); err != nil {
				t.Fatal(err)
			}
			before = currentDigest(t, source, url, clock)
			clock.at.Add(int64(4 * source.Moves))
			if currentDigest(t, source, url, clock) != before {
				t.Errorf("frozen, it serves something else after four times %s", source.Moves)
			}
		})
	}
}

// currentDigest is the digest of the values on the first pages of each feed.
func currentDigest(t *testing.T, source poll.Source, url string, clock *steppedClock) (sum uint64) {
	t.Helper()
	for _, feed := range source.Feeds {
		requests := feed.Requests(poll.Known{Now: clock.Now(), Read: map[string]time.Time{}})
		for _, r := range requests[:min(len(requests), 2)] {
			var readings poll.Readings
			if err := source.Decode(r.Path, simulatedAnswer(t, url, r), &readings); err != nil {
				t.Fatalf("%s: %v", r.Path, err)
			}
			sum += poll.ValuesDigest(&readings)
		}
	}
	return sum
}
