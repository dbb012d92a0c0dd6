package yields

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// krakenEarn reads the strategies of Kraken Earn: APRs in percent that Kraken estimates as a range, of which the lower end is
// taken. The endpoint is described on https://docs.kraken.com/api/docs/rest-api/list-strategies. The least that may be
// allocated is reported in USD, and is left out.
func krakenEarn() poll.Source {
	return poll.Source{
		Slug: "kraken-earn", Name: "Kraken Earn", Version: 2,
		URL:         "https://api.kraken.com",
		License:     "under Kraken's terms of service",
		Terms:       "https://www.kraken.com/legal",
		Attribution: "Source: Kraken",
		Off:         "it answers accounts only: the key file has to hold an API key that may query funds, and its private key",
		KeyHeader:   "API-Key",
		Sign:        signKraken,
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{
			Name: "strategies",
			Evidence: producers.Documented("https://docs.kraken.com/api/docs/rest-api/list-strategies").And(
				"https://github.com/thrasher-corp/gocryptotrader/tree/master/exchanges/kraken",
				github("JKorf/Kraken.Net", "main", "Kraken.Net.UnitTests/Endpoints/Spot/Earn/GetStrategies.txt"),
				github("btschwertfeger/python-kraken-sdk", "HEAD", "src/kraken/spot/earn.py")).But(
				"lock types other than instant, bonded and flex: what a timed one is locked for is on no page"),
			Interval: time.Hour, Requests: poll.FixedRequests(poll.Request{Path: "/0/private/Earn/Strategies", Body: `{"limit":500}`}),
		}},
		Moves:    0, // ranges that Kraken sets, may be unchanged for any time
		Requests: 10, Per: time.Minute,
		MaxBody: 8 << 20,
		Decode:  decodeKrakenEarn,
	}
}

func decodeKrakenEarn(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Errors []string `json:"error"`
		Result struct {
			Items []json.RawMessage `json:"items"`
			// Next is where the next page begins; empty on the last one.
			Next string `json:"next_cursor"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if len(response.Errors) > 0 || !answer.SomeRow(response.Result.Items, "id", "asset") {
		return producers.Unreadable("no strategies in it; it says %.200q", response.Errors)
	}
	answer.EachRow(response.Result.Items, out, krakenStrategy)
	if response.Result.Next != "" { // a page may be capped below what is asked for
		answer.Refuse(out, producers.Unreadable("next_cursor: %d strategies are not all there are", len(response.Result.Items)), "the list")
	}
	return nil
}

func krakenStrategy(row json.RawMessage, out *poll.Readings) error {
	var s struct {
		ID    string `json:"id"`
		Asset string `json:"asset"`
		APR   struct {
			Low producers.Num `json:"low"`
		} `json:"apr_estimate"`
		Most         producers.Num `json:"user_cap"`
		AutoCompound struct {
			Type string `json:"type"`
		} `json:"auto_compound"`
		Lock struct {
			Type      string        `json:"type"`
			Every     producers.Num `json:"payout_frequency"`
			Bonding   producers.Num `json:"bonding_period"`
			Queue     producers.Num `json:"exit_queue_period"`
			Unbonding producers.Num `json:"unbonding_period"`
		} `json:"lock_type"`
		Source struct {
			Type string `json:"type"`
		} `json:"yield_source"`
	}
	var f answer.Fields
	if !f.Parse(row, &s) {
		return f.Err
	}
	if strings.Trim(string(s.Most), "0.") == "" && s.Most != "" {
		return nil // a cap of zero, spelled with places or without: it takes nothing more
	}
	if !slices.Contains(krakenLocks, s.Lock.Type) {
		return producers.Unreadable("lock_type.type: %.40q is no known lock", s.Lock.Type) // its length is not given
	}
	const day = 24 * 60 * 60
	// Whoever leaves waits in a queue first, then until the asset is unbound.
	notice := daysOf(&f, "unbonding_period", s.Lock.Unbonding, day)
	if queue := daysOf(&f, "exit_queue_period", s.Lock.Queue, day); notice != nil && queue != nil {
		*notice += *queue
	}
	every := krakenSpans[f.Count("payout_frequency", s.Lock.Every)]
	rate := &eventsv1.Rate{
		Project: "kraken", Pool: s.ID, Symbol: s.Asset, Category: schemas.RateLending, Raw: string(s.APR.Low), RawUnit: "apr_percent",
		Compounding: "none", Term: "flexible", MaxAmount: string(s.Most), Payout: every,
		LockupDays: daysOf(&f, "bonding_period", s.Lock.Bonding, day), NoticeDays: notice,
	}
	if s.Source.Type == "staking" {
		rate.Category = schemas.RateStaking
	}
	if s.AutoCompound.Type == "enabled" && every != "" {
		rate.Compounding = every
	}
	if f.Err == nil {
		out.Rate(rate)
	}
	return f.Err
}

// krakenLocks are the kinds of locks whose meaning is documented: none of them is for a fixed term. Some rows have no lock.
var krakenLocks = []string{"", "instant", "bonded", "flex"}

// krakenSpans are the usual seconds between two payments, in our words.
var krakenSpans = map[uint32]string{60 * 60: "hourly", 24 * 60 * 60: "daily", 7 * 24 * 60 * 60: "weekly"}
