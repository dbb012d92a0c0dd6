package providers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

const (
	// channelCode is the channel's number in the stream.
	channelCode = 19
	// lookEvery is how often the states of providers are compared while somebody follows them.
	lookEvery = 5 * time.Second
)

// Reasons of a state.
const (
	reasonSilence     = "silence"
	reasonFailures    = "failures"
	reasonSuccessRate = "success_rate"
	reasonDisabled    = "disabled"
)

// StreamedState is the state of a provider as the stream sends it.
type StreamedState struct {
	Slug   string `json:"slug" example:"kraken"`
	Name   string `json:"name" example:"Kraken"`
	Kind   string `json:"kind" enum:"exchange,cefi,defi,reference"`
	Status string `json:"status" enum:"healthy,degraded,down,disabled" doc:"As /providers has it"`
	Reason string `json:"reason,omitempty" enum:"silence,failures,success_rate,unmoved,empty,disabled" doc:"Why it is not healthy. silence: nothing was received; failures: the last requests failed; success_rate: too many failed in 24 hours; unmoved, empty: it responds, but its data has stopped changing, or has no values"`
	Since  string `json:"since,omitempty" format:"date-time" doc:"Since when: the last time that something was received, or the time of the change; absent where that is not known"`

	LastSuccess string                 `json:"lastSuccess,omitempty" format:"date-time" doc:"For an exchange, when a price was last received"`
	LastError   *views.ProviderFailure `json:"lastError,omitempty"`
	Simulated   bool                   `json:"simulated,omitempty"`
}

// exampleState is one, for documents.
var exampleState = StreamedState{Slug: "kraken", Name: "Kraken", Kind: kindExchange, Status: degraded, Reason: reasonSilence,
	Since: "2026-03-01T09:58:00.000Z", LastSuccess: "2026-03-01T09:58:00.000Z"}

// Channels declares the channel of the states of providers. They are by the clock of the process that serves the stream, and not
// in the log: whoever begins, also after a while, is sent all of them, then what changes.
func (u *Unit) Channels(now func() time.Time, log *slog.Logger) []query.Channel {
	w := &watch{unit: u, now: now, log: log}
	return []query.Channel{{
		Name: "sources", Code: channelCode, Event: "source_update",
		Doc: "The state of each venue and source: first of all of them, unless snapshot is false, then of each whose state changes, within some 5 s. " +
			"A connection that goes on with a cursor begins with all of them, too.",
		Step: lookEvery, Element: exampleState, Identity: "sources", Follow: w.follow, Present: w.present,
	}}
}

// watch compares the states of providers with those before.
type watch struct {
	unit *Unit
	now  func() time.Time
	log  *slog.Logger
	// states are as they were sent, in the order of slugs.
	states atomic.Pointer[[]StreamedState]
}

func (w *watch) present() []query.ChannelElement {
	states := w.states.Load()
	if states == nil {
		return nil
	}
	elements, err := encodeStates(*states, w.now().Unix())
	if err != nil {
		w.log.Error("the states of providers cannot be sent", "error", err)
	}
	return elements
}

func (w *watch) follow(ctx context.Context, emit func(partition int32, offset int64, read query.ChannelRecord)) error {
	w.states.Store(nil)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := w.look(ctx, emit); err != nil && ctx.Err() == nil {
			w.log.Warn("the states of providers cannot be read; the last known ones are kept", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// look returns what changed.
func (w *watch) look(ctx context.Context, emit func(partition int32, offset int64, read query.ChannelRecord)) error {
	now := w.now()
	all, err := w.unit.All(ctx, now)
	if err != nil {
		return err
	}
	before := map[string]StreamedState{}
	known := w.states.Load()
	if known != nil {
		for _, s := range *known {
			before[s.Slug] = s
		}
	}
	states, changed := make([]StreamedState, len(all)), []StreamedState(nil)
	for i := range all {
		s := stateOf(&all[i])
		if was, ok := before[s.Slug]; ok && was.Status == s.Status && was.Reason == s.Reason {
			s.Since = was.Since
		} else if known != nil {
			if s.Since == "" {
				s.Since = query.FormatTime(now.UnixNano())
			}
			changed = append(changed, s)
		}
		states[i] = s
	}
	elements, err := encodeStates(changed, now.Unix())
	if err != nil {
		return err
	}
	w.states.Store(&states)
	emit(0, 0, query.ChannelRecord{Elements: elements, Until: now.Unix(), Partial: known == nil})
	return nil
}

func encodeStates(states []StreamedState, second int64) (elements []query.ChannelElement, err error) {
	for _, s := range states {
		encoded, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("encoding the state of %s: %w", s.Slug, err)
		}
		elements = append(elements, query.ChannelElement{Second: second, JSON: encoded})
	}
	return elements, nil
}

// stateOf reports why a provider is as it is, and since when as far as that is known.
func stateOf(p *views.ProviderState) StreamedState {
	s := StreamedState{Slug: p.Slug, Name: p.Name, Kind: p.Kind, Status: p.Status, LastSuccess: p.LastSuccess, LastError: p.LastError, Simulated: p.Simulated}
	switch {
	case p.Status == healthy:
	case p.Status == disabled:
		s.Reason = reasonDisabled
	case p.ConsecutiveFailures > 0:
		s.Reason, s.Since = reasonFailures, p.LastSuccess
	case p.Standstill != nil:
		s.Reason, s.Since = p.Standstill.Reason, p.Standstill.Since
	case p.Kind != kindExchange && p.SuccessRate24h != nil && *p.SuccessRate24h < goodPercent:
		s.Reason = reasonSuccessRate
	default:
		s.Reason, s.Since = reasonSilence, p.LastSuccess
	}
	return s
}
