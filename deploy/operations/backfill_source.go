package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
)

// backfilledSeries is how many series of a polled source are back-filled by default, the best known ones.
const backfilledSeries = 100

const (
	// OwnSeries and ownValues bound what a start reads of a polled source, so that it is over soon and leaves the log its
	// room: 25 pools, and of each currency the hours of a month.
	OwnSeries = 25
	ownValues = 30 * 24
	// ownYear is the longest timeframe of the charts of rates that a start fills.
	ownYear = 365 * 24 * time.Hour
)

// sourceJob prepares the back-fill of a polled source, within a share of its budget.
func sourceJob(ctx context.Context, in *instance.Instance, declared poll.Source, input BackfillInput, known map[string]bool, log *pastLog) (*backfill.SourceJob, error) {
	s := in.SourceState(declared)
	if !s.Enabled {
		return nil, fmt.Errorf("%s is not polled, so its history cannot be read: %s", s.Slug, s.Why)
	}
	pace := float64(s.Requests) / s.Per.Seconds() * backfillShare
	cfg, err := in.SourceConfig(s)
	if err != nil {
		return nil, err
	}
	cfg.Requests, cfg.Per = 1, time.Duration(float64(time.Second)/pace)
	client, err := fetch.New(cfg, in.Clock, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", s.Slug, err)
	}
	listed, err := backfill.Listed(ctx, s.Source, s.Address, client)
	if err != nil {
		return nil, err
	}
	j := &backfill.SourceJob{
		Source: s.Source, URL: s.Address, Producer: backfillProducer(in, s.Slug),
		Fetch: in.PausedFetch(client), Pace: pace, Log: log.ranges, Out: log.values.Source(s.Slug), Known: log.known, Clock: in.Clock, Report: log.report,
	}
	back := BackfilledPast
	own := input.Own || input.Gaps && slices.Contains(OwnSources(in), s.Slug)
	if own && len(input.Symbols) == 0 {
		j.Series = OwnPicked(listed, known)
		back = min(ownYear, ownValues*s.Past.Interval)
	} else if j.Series, err = pickSeries(s.Slug, listed, input.Symbols, known); err != nil {
		return nil, err
	}
	j.From, j.To = window(in, input, back)
	return j, nil
}

// OwnPicked are the series that charts need most: the best known of each coin and category by the rank of the coin, then the
// others as they are listed. At the end are the known ones beside them.
func OwnPicked(listed []poll.Series, known map[string]bool) []poll.Series {
	coins := schemas.Coins()
	first := map[poll.Series]bool{}
	var picked, others []poll.Series
	for _, s := range listed {
		if of := (poll.Series{Coin: s.Coin, Category: s.Category}); s.Coin != "" && !first[of] {
			first[of] = true
			picked = append(picked, s)
		} else {
			others = append(others, s)
		}
	}
	rank := func(s poll.Series) int {
		coin, _ := coins.ByID(s.Coin)
		return cmp.Or(coin.Rank, len(coins.All())+1)
	}
	slices.SortStableFunc(picked, func(a, b poll.Series) int { return rank(a) - rank(b) })
	picked = append(picked, others...)
	most := min(len(picked), OwnSeries)
	best := slices.DeleteFunc(slices.Clone(picked[most:]), func(s poll.Series) bool { return !known[s.ID] })
	return append(picked[:most], best...)
}

// pickSeries picks from what a source has a past of: what was named by its id, its symbol or its coin, else
// what is known, else the best known. A name that fits none is an error.
func pickSeries(source string, listed []poll.Series, names []string, known map[string]bool) ([]poll.Series, error) {
	if len(names) == 0 && len(known) == 0 {
		return listed[:min(len(listed), backfilledSeries)], nil
	}
	found := make([]bool, len(names))
	var picked []poll.Series
	for _, s := range listed {
		wanted := len(names) == 0 && known[s.ID]
		coin, _ := schemas.Coins().ByID(s.Coin)
		for i, name := range names {
			if slices.ContainsFunc([]string{s.ID, s.Symbol, s.Coin, coin.Symbol}, func(own string) bool { return strings.EqualFold(name, own) }) {
				found[i], wanted = true, true
			}
		}
		if wanted {
			picked = append(picked, s)
		}
	}
	var faults []error
	for i, name := range names {
		if !found[i] {
			faults = append(faults, fmt.Errorf("%s has no history of %q: name the id or symbol of one of its pools or currencies; `marketlog backfill --source %s --dry-run` lists the best known", source, name, source))
		}
	}
	return picked, errors.Join(faults...)
}
