package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	described "github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
)

// checkPatience is how long the check of one source may take: its budget may make a request wait.
const checkPatience = 2 * time.Minute

// CheckLine is what the check of one feed found.
type CheckLine struct {
	Source string `json:"source"`
	Feed   string `json:"feed"`
	URL    string `json:"url,omitempty"`
	Status int    `json:"status,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	// Rows could be read, Refused could not; Reasons are the first of why.
	Rows    int      `json:"rows"`
	Refused int      `json:"refused"`
	Reasons []string `json:"reasons,omitempty"`
	// Skipped means that there was nothing to ask for: the feeds that it goes by held nothing, or nothing more.
	Skipped bool `json:"skipped,omitempty"`
	// Drift are fields that are gone or have become something else than the adapter was written for.
	Drift []string `json:"drift"`
	Error string   `json:"error,omitempty"`
}

// Wrong means that somebody should look at the adapter.
func (l CheckLine) Wrong() bool { return l.Error != "" || l.Refused > 0 || len(l.Drift) > 0 }

// checkSource asks for the first path of each feed once, within the budget of the source where it is asked here. A feed
// whose paths come from what others returned follows these. Nothing is written to the log.
func checkSource(ctx context.Context, in *instance.Instance, s instance.SourceState, emit func(any) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	var client *fetch.Client
	if running, ok := in.Sources.Get(s.Slug); ok {
		client = running.Client
	} else {
		var err error
		if client, err = in.SourceClient(s); err != nil {
			return err
		}
	}
	known := poll.Known{Now: in.Clock.Now(), Read: map[string]time.Time{}}
	for _, feed := range s.Feeds {
		line := CheckLine{Source: s.Slug, Feed: feed.Name, Drift: []string{}}
		requests := feed.Requests(known)
		if len(requests) == 0 {
			line.Skipped = true
		} else {
			checkFeed(ctx, in, client, s, feed, requests[0], &line, &known)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
	return nil
}

func checkFeed(ctx context.Context, in *instance.Instance, client *fetch.Client, s instance.SourceState, feed poll.Feed, request poll.Request, line *CheckLine, known *poll.Known) {
	base := s.Base(in.Config.Sources[s.Slug].URL, feed.Name)
	line.URL = base + request.Path
	answer, err := client.Get(ctx, base, request, poll.Validators{})
	line.Status, line.Bytes = answer.Status, len(answer.Body)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; the source allows %d requests in %s, which its feeds share", err, s.Requests, s.Per)
	}
	if err != nil {
		line.Error = err.Error()
		return
	}
	var readings poll.Readings
	if err := s.Decode(request.Path, answer.Body, &readings); err != nil {
		line.Error = err.Error()
	}
	line.Rows, line.Refused = len(readings.Fixings)+len(readings.Records), len(readings.Refused)
	for _, refused := range readings.Refused[:min(len(readings.Refused), 3)] {
		line.Reasons = append(line.Reasons, refused.Error())
	}
	drift, err := described.Drift(s.Source, feed.Name, answer.Body)
	if err != nil && line.Error == "" {
		line.Error = err.Error()
	}
	line.Drift = append(line.Drift, drift...)
	ranked := map[string]bool{}
	for _, id := range known.Ranked {
		ranked[id] = true
	}
	for _, rec := range readings.Records {
		id := rec.GetCoinMarket().GetSourceId()
		if id == "" {
			id = rec.GetCoin().GetSourceId()
		}
		if id != "" && !ranked[id] {
			ranked[id] = true
			known.Ranked = append(known.Ranked, id)
		}
	}
	known.Read[request.Path] = known.Now
}

// checkSources checks one source, also one that is off, or all that are on.
func checkSources(ctx context.Context, in *instance.Instance, name string, emit func(any) error) error {
	if name != "" {
		s, ok := config.SourceNamed(name)
		if !ok {
			return unknownSource(name)
		}
		return checkSource(ctx, in, in.SourceState(s), emit)
	}
	for _, declared := range sources.List() {
		s := in.SourceState(declared)
		if !s.Enabled && s.Why != instance.NoAnswer { // without an instance a person who asks means the public interface
			continue
		}
		if err := checkSource(ctx, in, s, emit); err != nil {
			return fmt.Errorf("checking %s: %w", s.Slug, err)
		}
	}
	return nil
}
