package rates

import (
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Explanation is what the rates of a coin were made from, and whether working them out again gives the same.
type Explanation struct {
	Symbol     string   `json:"symbol"`
	CoinID     string   `json:"coinId"`
	Method     string   `json:"method" enum:"apy" doc:"apy: every rate is computed as percent per year, compounded"`
	Accepted   []string `json:"accepted" doc:"Providers with at least one accepted rate"`
	Rejected   []string `json:"rejected" doc:"Providers without an accepted rate"`
	Inputs     []Input  `json:"inputs" doc:"Every reported rate of the coin; for prices see /prices/{symbol}/explain"`
	View       View     `json:"view" doc:"Version and progress of the processor that made the rates"`
	AsOf       string   `json:"asOf" format:"date-time" doc:"The time that accepted and ageMs are as of"`
	Reproduced bool     `json:"reproduced" doc:"Whether all inputs are reproducible. False means a defect of this service, or an input written by a newer version of it"`
}

// Input is a rate as it was reported, and what was made of it.
type Input struct {
	ID             string   `json:"id" doc:"As in the lists of rates"`
	Provider       string   `json:"provider"`
	ProviderSymbol string   `json:"providerSymbol,omitempty" doc:"The symbol used by the provider"`
	Category       string   `json:"category" doc:"lending and staking earn the rate, borrowing costs it"`
	Source         string   `json:"source" doc:"The source that reported it"`
	Pool           string   `json:"pool" doc:"The id used by the source"`
	Raw            string   `json:"raw" doc:"The number as reported by the source"`
	RawUnit        string   `json:"rawUnit" doc:"Unit of raw, such as apr_fraction_hourly"`
	Compounding    string   `json:"compounding,omitempty" doc:"Assumed compounding frequency of an APR; absent if the source reported an APY"`
	Conversion     string   `json:"conversion" doc:"How the rate was computed from it"`
	APR            float64  `json:"apr" doc:"Percent per year, not compounded (APR)"`
	APY            float64  `json:"apy" doc:"Percent per year, compounded (APY)"`
	RewardAPY      *float64 `json:"rewardApy,omitempty" doc:"The part of the APY paid in other tokens"`
	MethodVersion  uint32   `json:"methodVersion" doc:"Version of the rule that computes apr, apy and rewardApy from raw; the recomputation uses the same version"`
	Recomputed     *float64 `json:"recomputed,omitempty" doc:"The recomputed APY, if it differs from the published one"`
	Reproduced     bool     `json:"reproduced" doc:"Whether recomputing by the rule of that version gave the same result; also false if this server does not know the version"`
	Accepted       bool     `json:"accepted" doc:"Whether it is among the current rates"`
	Reason         string   `json:"reason,omitempty" doc:"Why it is not accepted: stale, or replaced by a better source (shadowed_by and its name)"`
	ObservedAt     string   `json:"observedAt,omitempty" format:"date-time" doc:"Event time, by the source's clock"`
	ReceivedAt     string   `json:"receivedAt,omitempty" format:"date-time" doc:"When a response of the source last contained it"`
	AgeMs          int64    `json:"ageMs" doc:"Milliseconds since receivedAt"`
	SourceURL      string   `json:"sourceUrl,omitempty" doc:"The request that was sent"`
	FetchedAt      string   `json:"fetchedAt,omitempty" format:"date-time" doc:"When the request was sent"`
	BodySHA256     string   `json:"bodySha256,omitempty" doc:"Digest of the response that contained it, hexadecimal"`
	Offset         Position `json:"offset" doc:"Its position in the log"`
}

// Position is a place in the log.
type Position struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset" doc:"Offset of the record in its partition"`
}

// View reports which version of the logic made the rates, and how far it has folded.
type View struct {
	Version       uint32           `json:"version" doc:"Version of the processor that made the rates"`
	AppliedOffset map[string]int64 `json:"appliedOffset" doc:"End of the last folded minute in Unix nanoseconds, by partition"`
}

const reasonStale = "stale"

// explain works out again every rate that was reported of a coin, also those that do not count.
func (u *Unit) explain(f *filter, v coinVersion, now time.Time) *Explanation {
	current := v.index.current
	x := &Explanation{
		Symbol: f.coin.symbol, CoinID: f.coin.id, Method: "apy", Accepted: []string{}, Rejected: []string{}, Inputs: []Input{},
		View: View{current.Mark.GetLogicVersion(), map[string]int64{"0": current.Time}}, AsOf: query.FormatTime(now.UnixNano()), Reproduced: true,
	}
	answers := u.catalog.Snapshot().Answers
	for _, e := range current.Entries {
		if e.CoinId != f.coin.id || !slices.Contains(categories, e.Category) || f.category != "" && e.Category != f.category || f.provider != "" && e.Provider != f.provider {
			continue
		}
		in := input(e, now.UnixNano())
		if fetch := answering(answers[e.Source], e.Said.GetIngestTime()); fetch != nil {
			in.SourceURL, in.FetchedAt, in.BodySHA256 = fetch.Url, query.FormatTime(fetch.Started), fetch.BodySha256
		}
		x.Inputs = append(x.Inputs, in)
		x.Reproduced = x.Reproduced && in.Reproduced
		if in.Accepted && !slices.Contains(x.Accepted, e.Provider) {
			x.Accepted = append(x.Accepted, e.Provider)
		}
	}
	for _, in := range x.Inputs {
		if !slices.Contains(x.Accepted, in.Provider) && !slices.Contains(x.Rejected, in.Provider) {
			x.Rejected = append(x.Rejected, in.Provider)
		}
	}
	slices.Sort(x.Accepted)
	slices.Sort(x.Rejected)
	return x
}

func input(e *eventsv1.RateEntry, now int64) Input {
	source := e.Said
	if source == nil {
		source = &eventsv1.Rate{}
	}
	in := Input{
		ID: rateID(e.Source, e.Category, e.Pool), Provider: e.Provider, ProviderSymbol: e.ProviderSymbol, Category: e.Category, Source: e.Source, Pool: e.Pool,
		Raw: source.Raw, RawUnit: source.RawUnit, Compounding: source.Compounding, APR: e.Apr, APY: e.Apy, RewardAPY: e.RewardApy,
		MethodVersion: max(e.Method, 1), Accepted: views.RateCounts(e, now),
		ObservedAt: query.FormatTime(source.EventTime), ReceivedAt: query.FormatTime(e.Heard), AgeMs: (now - e.Heard) / int64(time.Millisecond),
		Offset: Position{schemas.TopicRatesRaw, 0, e.Offset},
	}
	switch {
	case in.Accepted:
	case e.Shadowed != "":
		in.Reason = "shadowed_by " + e.Shadowed
	default:
		in.Reason = reasonStale
	}
	in.Conversion = conversion(source.RawUnit, source.Compounding)
	if rule, known := schemas.RateRuleBy(e.Method); known {
		in.reproduce(rule, e)
	}
	return in
}

// reproduce works the rate out again by the rule that made it.
func (in *Input) reproduce(rule schemas.RateRule, e *eventsv1.RateEntry) {
	apr, apy, err := rule.Yearly(in.Raw, in.RawUnit, in.Compounding)
	reward := rule.RewardAPY(in.Raw, e.Said.GetReward(), in.RawUnit, in.Compounding)
	same := (reward == nil) == (e.RewardApy == nil) && (reward == nil || *reward == *e.RewardApy)
	if in.Reproduced = err == nil && apr == e.Apr && apy == e.Apy && same; !in.Reproduced && err == nil {
		in.Recomputed = &apy
	}
}

// answering is the answer that held what was read at a time: the last one that was asked for before it.
func answering(answers []*eventsv1.Fetch, read int64) *eventsv1.Fetch {
	for _, fetch := range slices.Backward(answers) {
		if fetch.Started <= read {
			return fetch
		}
	}
	return nil
}

// conversion writes how a rate in a unit becomes an APY in percent.
func conversion(unit, compounding string) string {
	written := map[string]string{
		"apy_percent": "apy = raw", "apy_fraction": "apy = raw * 100",
		"apr_percent": "apr = raw", "apr_fraction": "apr = raw * 100", "apr_fraction_hourly": "apr = raw * 100 * 8760",
		"apr_fraction_daily": "apr = raw * 100 * 365", "apr_percent_daily": "apr = raw * 365",
	}[unit]
	switch periods := schemas.Compoundings[compounding]; {
	case compounding == "":
		return written
	case periods == 0:
		return written + "; apy = apr"
	default:
		return written + "; apy = ((1 + apr / 100 / n) ^ n - 1) * 100 with n = " + strconv.FormatFloat(periods, 'g', -1, 64)
	}
}
