package instance

import (
	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/stream/history"
)

// measure registers what is measured of the pipeline, whatever of it this process runs.
func (in *Instance) measure() {
	in.Folding = processors.NewMetrics(in.Metrics)
	in.Feeds = &metrics.Feeds{Now: in.Clock.Now, Began: in.Began, Paused: func() []string { return in.Pauses.paused() }}
	in.position = &metrics.Log{Now: in.Clock.Now, Began: in.Began, Positions: in.Folding.Positions, Limits: in.Config.LogLimits()}
	in.Jobs = admin.NewJobMetrics(in.Metrics)
	in.Metrics.MustRegister(in.Feeds, in.position, &metrics.Tables{Store: in.openedHistory})
	if in.archiving != nil {
		in.Metrics.MustRegister(in.archiving)
	}
}

// openedHistory is the store if it was opened already.
func (in *Instance) openedHistory() *history.Store {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.history
}
