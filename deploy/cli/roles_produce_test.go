package cli

import (
	"testing"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/poll"
)

// Whoever reads rates only, and no venue, has minutes too: they end by the log's time in the topics of ticks.
func TestTimeGoesOnWithoutVenues(t *testing.T) {
	in := simulatedInstance(t, nil, func(in *instance.Instance) {
		for slug, s := range in.Config.Sources {
			s.Enabled = "false"
			in.Config.Sources[slug] = s
		}
	})
	produce(t, in)
	log := readRawLog(t, in)
	log.until("the clock has moved", func() bool { return len(log.seconds[poll.SourcesProducer]) > 1 })
}
