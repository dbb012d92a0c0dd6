package poll

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Source declares an interface that is polled for reference values: what the engine needs to read it.
// It is the whole of an adapter, together with Decode.
type Source struct {
	// Slug is the source's name in topics, tables and commands; Name is for people.
	Slug, Name string
	// Aliases are other names that commands take for it: its host, or what its documentation calls it.
	Aliases []string
	// Version goes into dead letters. Raise it with every change of what Decode reads.
	Version uint32
	// URL is the public default, without a slash at the end; configuration may replace it.
	URL string
	// Kinds of data that it provides, each a Kind constant.
	Kinds []string
	// License is under which terms the values may be passed on, Terms is the page that says it and
	// Attribution what has to be shown with them; empty if nothing is asked.
	License, Terms, Attribution string
	// OwnUse says how the terms forbid to pass the values on, so that exports leave them out; empty where they do not, or where
	// that is not known.
	OwnUse string
	// Off reports why the source is not asked unless it is switched on; empty if it is asked by default.
	Off string
	// KeyHeader is the header of requests that carries a key, where the source knows keys; the key itself is
	// configured as a file.
	KeyHeader string
	// Sign proves to a source that answers accounts only that a request comes from the holder of the key; nil where the key
	// is enough. The key file then holds the key and the secrets that the provider issued with it, separated by spaces.
	Sign func(secrets []string, r Request, now time.Time) (Request, error)

	// Formats hold testdata/<slug>/format, which describes the answers that Decode reads; see answer.Drift.
	Formats fs.FS

	// History are paths below URL that are read once at the start, before all others: they hold what a
	// process that was away has missed. Nil means none.
	History func(k Known) []string
	// Past is what it reports of the past when a back-fill asks for it; nil is nothing.
	Past *Past
	// Feeds are read side by side, one request of each in turn.
	Feeds []Feed
	// Moves is how often, by its documentation, some of its values move, at least the interval of its feeds and at most
	// 48 hours: a source that responds three times as long without a change is degraded. 0: its values may stay the same
	// for any time, and its health does not depend on them.
	Moves time.Duration
	// Requests may be made within Per, every attempt counted.
	Requests int
	Per      time.Duration
	// MaxBody is how many bytes an answer may have, unpacked.
	MaxBody int64

	// Decode adds to out the contents of the response to a path. A response that cannot be read as a whole is an
	// error, and nothing of it counts. An empty path is that of a file whose origin is not known: Decode
	// then reports by the answer itself which one it is.
	Decode func(path string, body []byte, out *Readings) error
}

// Kinds of data that sources provide.
const (
	KindCoin       = "coin"
	KindMarket     = "market"
	KindStablecoin = "stablecoin"
	KindTVL        = "tvl"
	KindFearGreed  = "fear_greed"
	KindFiat       = "fiat"
	KindGlobal     = "global"
	KindRate       = "rate"
)

// Feed is a part of a source that is read in rounds.
type Feed struct {
	// Name is unique within the source.
	Name string
	// Evidence is how the format of its answers is known.
	Evidence producers.Evidence
	// Interval is the time from the beginning of a round to that of the next; a round that takes longer is
	// followed by the next at once.
	Interval time.Duration
	// URL is where its paths are, for sources with several hosts; empty: below the source's. One that is
	// configured for the source replaces both.
	URL string
	// Requests are those of a round, in this order, given what is known when it begins. Those left of a round that was
	// cut off are made first.
	Requests func(k Known) []Request
	// Skips is whether a request that the server rejects for good (4xx) is skipped, since it is for one entity of many.
	// Otherwise it is retried like any other failure.
	Skips bool
}

// Known is what a source has reported so far.
type Known struct {
	Now time.Time
	// Ranked are the source's ids of coins, the highest ranked first; those without a rank follow by id.
	Ranked []string
	// Read is when each path was last answered, be it by a refusal for good.
	Read map[string]time.Time
	// Newest is the latest day of which the log holds something, for sources of daily values; zero: it holds
	// nothing, or nothing that is newer than knownSpan.
	Newest time.Time
}

// Fixed are GET requests of the same paths in each round.
func Fixed(paths ...string) func(Known) []Request {
	return Gets(func(Known) []string { return paths })
}

// FixedRequests are the same requests in each round.
func FixedRequests(requests ...Request) func(Known) []Request {
	return func(Known) []Request { return requests }
}

// Gets are GET requests of the paths that a function chooses.
func Gets(paths func(Known) []string) func(Known) []Request {
	return func(k Known) []Request {
		var requests []Request
		for _, path := range paths(k) {
			requests = append(requests, Request{Path: path})
		}
		return requests
	}
}

// Named means that a command which names it so means this source.
func (s Source) Named(name string) bool {
	return name == s.Slug || slices.Contains(s.Aliases, name)
}

// Base is the URL that the paths of a feed are appended to; configured is empty for the public interface.
func (s Source) Base(configured, feed string) string {
	if configured != "" {
		return configured
	}
	for _, f := range s.Feeds {
		if f.Name == feed && f.URL != "" {
			return f.URL
		}
	}
	return s.URL
}

// Interval is that of the feed which is read most often.
func (s Source) Interval() time.Duration {
	least := time.Duration(0)
	for _, f := range s.Feeds {
		if least == 0 || f.Interval < least {
			least = f.Interval
		}
	}
	return least
}

// Request is one request to a source.
type Request struct {
	// Path is below the base URL, with its query.
	Path string
	// Body is JSON to post; a request without one is a GET.
	Body string
	// Header is sent in addition to the headers of every request.
	Header map[string]string
}

// Method is POST for a request with a body, else GET.
func (r Request) Method() string {
	if r.Body != "" {
		return http.MethodPost
	}
	return http.MethodGet
}

// Validators are what a server calls the state of an answer (RFC 9110, 8.8). The zero value means none.
type Validators struct{ ETag, LastModified string }

// Answer is the outcome of a request, also of one that failed.
type Answer struct {
	Body []byte
	// Status is the HTTP status of the last attempt, 0 if there was no answer; 304 if nothing changed.
	Status   int
	Started  time.Time
	Duration time.Duration
	// Validators are for the next request.
	Validators Validators
}

// Getter asks the HTTP interface of a source, within its budget.
type Getter interface {
	// Get returns a successful answer, or one without a body and with status 304 if nothing changed
	// since the answer with the given validators. The URL is base followed by the path of the request.
	Get(ctx context.Context, base string, r Request, since Validators) (Answer, error)
}

// Readings collects what one answer has.
type Readings struct {
	Fixings []Fixing
	// Records are all others, in the form of the log.
	Records []*eventsv1.ReferenceRecord
	// Refused are rows that could not be read, each wraps a schemas.Reason.
	Refused []error
}

// Fixing is what a source reports a currency costs: units of Quote for one unit of Base, both ISO 4217 codes, as an
// exact decimal. Date is ISO 8601, the day it holds for.
type Fixing struct {
	Base, Quote, Rate, Date string
	// Now means that it holds as of the answer, which reports no time: Date and Event are those of the answer.
	Now bool
	// Event is when the source set it, for sources that do so within a day; zero for daily ones.
	Event time.Time
	// Providers are whom the source blended it from, if it names them.
	Providers []string
}

// Fixing takes a rate, makes its number canonical, and rejects it if it is invalid.
func (r *Readings) Fixing(f Fixing) {
	rate, err := checkFixing(f)
	if err != nil {
		r.Refused = append(r.Refused, fmt.Errorf("reading the rate of %.10q on %.20q: %w", f.Quote, f.Date, err))
		return
	}
	f.Rate = rate
	r.Fixings = append(r.Fixings, f)
}

// Bounds of a rate, those of a price.
const maxRateDecimals = 18

var maxRate = decimal.New(1, 12)

func checkFixing(f Fixing) (canonical string, err error) {
	if !isCurrency(f.Base) || !isCurrency(f.Quote) || f.Base == f.Quote {
		return "", fmt.Errorf("%w: %.10q/%.10q is not a pair of currency codes", schemas.Undecodable, f.Base, f.Quote)
	}
	if _, err := time.Parse(time.DateOnly, f.Date); !f.Now && err != nil {
		return "", fmt.Errorf("%w: %.20q is not a date", schemas.Undecodable, f.Date)
	}
	canonical, err = schemas.CanonicalDecimal(f.Rate)
	if err != nil {
		return "", err
	}
	rate, err := decimal.NewFromString(canonical)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %.40q", schemas.NotANumber, f.Rate)
	case !rate.IsPositive():
		return "", fmt.Errorf("%w: %s", schemas.NonPositive, canonical)
	case rate.Cmp(maxRate) > 0:
		return "", fmt.Errorf("%w: %s", schemas.Absurd, canonical)
	case rate.Exponent() < -maxRateDecimals:
		return "", fmt.Errorf("%w: %s", schemas.Precision, canonical)
	}
	return canonical, nil
}

// isCurrency checks the form of an ISO 4217 code. Codes outside our table are kept: the log may know more
// than today's readers of it.
func isCurrency(code string) bool {
	if len(code) != 3 {
		return false
	}
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return false
		}
	}
	return true
}
