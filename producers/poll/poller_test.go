package poll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// bank answers the requests of a source, without a network, so that time can be fake.
type bank struct {
	mu      sync.Mutex
	answers map[string]func() *http.Response
	asked   []string
}

func (b *bank) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	b.asked = append(b.asked, name)
	answer := b.answers[name]
	if answer == nil {
		return nil, errors.New("connection refused")
	}
	response := answer()
	if tag := response.Header.Get("ETag"); tag != "" && tag == r.Header.Get("If-None-Match") {
		response.StatusCode, response.Body = http.StatusNotModified, http.NoBody
	}
	return response, nil
}

func (b *bank) serves(name, body string, header ...string) {
	b.status(name, http.StatusOK, body, header...)
}

func (b *bank) status(name string, status int, body string, header ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name == historyFile {
		defer func() { b.answers[allFile] = b.answers[name] }()
	}
	b.answers[name] = func() *http.Response {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
	}
}

const (
	allFile     = "eurofxref-hist.xml"
	historyFile = "eurofxref-hist-90d.xml"
	dailyFile   = "eurofxref-daily.xml"
)

// days are a file of the bank; each is "date currency=rate …", the newest first.
func days(lines ...string) string {
	var s strings.Builder
	s.WriteString(`<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref"><Cube>`)
	for _, line := range lines {
		words := strings.Fields(line)
		fmt.Fprintf(&s, `<Cube time="%s">`, words[0])
		for _, w := range words[1:] {
			currency, rate, _ := strings.Cut(w, "=")
			fmt.Fprintf(&s, `<Cube currency="%s" rate="%s"/>`, currency, rate)
		}
		s.WriteString("</Cube>")
	}
	return s.String() + "</Cube></gesmes:Envelope>"
}

// memoryOutbox is a log in memory.
type memoryOutbox struct {
	records []*eventsv1.ReferenceRecord
	dead    []*eventsv1.DeadLetter
}

func (m *memoryOutbox) Known(_ context.Context, visit func(*eventsv1.ReferenceRecord)) error {
	for _, rec := range m.records {
		visit(rec)
	}
	return nil
}

func (m *memoryOutbox) Append(_ context.Context, records ...*eventsv1.ReferenceRecord) error {
	m.records = append(m.records, records...)
	return nil
}

func (m *memoryOutbox) Dead(_ context.Context, letter *eventsv1.DeadLetter) error {
	m.dead = append(m.dead, letter)
	return nil
}

// listed is what was written: rates, and of requests file, status and whether they failed.
func listed(records []*eventsv1.ReferenceRecord) string {
	var lines []string
	for _, rec := range records {
		switch body := rec.Body.(type) {
		case *eventsv1.ReferenceRecord_Fixing:
			f := body.Fixing
			lines = append(lines, fmt.Sprintf("%s %s/%s %s %s", f.Source, f.Base, f.Quote, f.Rate, f.Date))
		case *eventsv1.ReferenceRecord_Fetch:
			f := body.Fetch
			line := fmt.Sprintf("%s: %d, %d rows", f.Url[strings.LastIndex(f.Url, "/")+1:], f.Status, f.Rows)
			if f.Error != "" {
				line += ", failed"
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func newPoller(t *testing.T, b http.RoundTripper, out poll.SourceOutbox, url string) *poll.Poller {
	t.Helper()
	var source poll.Source
	for _, s := range sources.List() {
		if s.Slug == "ecb" {
			source = s
		}
	}
	client, err := fetch.New(fetch.SourceConfig(source), producers.WallClock{}, b)
	if err != nil {
		t.Fatal(err)
	}
	return poll.NewPoller(source, url, client, out, producers.WallClock{}, slog.New(slog.DiscardHandler))
}

// polling runs a poller for a time of a bubble whose clock began on 2000-01-01, a Saturday.
func polling(t *testing.T, b *bank, out *memoryOutbox, d time.Duration) poll.SourceStats {
	t.Helper()
	p := newPoller(t, b, out, "")
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	return p.Stats()
}

func wantWritten(t *testing.T, records []*eventsv1.ReferenceRecord, want ...string) {
	t.Helper()
	if got, want := listed(records), strings.Join(want, "\n"); got != want {
		t.Errorf("written:\n%s\nwant:\n%s", got, want)
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &memoryOutbox{}
		b.serves(historyFile, days("1999-12-31 USD=1.1 KRW=1600", "1999-12-30 USD=1.2"))
		b.serves(dailyFile, days("1999-12-31 USD=1.1 KRW=1600"))
		stats := polling(t, b, out, 90*time.Minute)
		wantWritten(t, out.records,
			"ecb EUR/USD 1.2 1999-12-30", "ecb EUR/KRW 1600 1999-12-31", "ecb EUR/USD 1.1 1999-12-31", allFile+": 200, 3 rows",
			dailyFile+": 200, 2 rows",
			dailyFile+": 200, 2 rows")
		if stats.Requests != 3 || stats.Failures != 0 || stats.Written != 3 || stats.Err != nil || stats.Heard.IsZero() {
			t.Errorf("stats = %+v, want 3 requests, 3 rows", stats)
		}

		// The next process knows what the log holds. What it missed is in the history; a rate that was put
		// right is written again.
		before := len(out.records)
		b.serves(historyFile, days("2000-01-03 USD=1.3", "1999-12-31 USD=1.11 KRW=1600", "1999-12-30 USD=1.2"))
		b.serves(dailyFile, days("2000-01-03 USD=1.3"))
		time.Sleep(72 * time.Hour)
		polling(t, b, out, time.Minute)
		wantWritten(t, out.records[before:],
			"ecb EUR/USD 1.11 1999-12-31", "ecb EUR/USD 1.3 2000-01-03", historyFile+": 200, 4 rows",
			dailyFile+": 200, 1 rows")
	})
}

// The log may hold the beginning only of what an answer held, and never the old without a trace of the new.
func TestAKilledProcessIsContinued(t *testing.T) {
	whole := &memoryOutbox{}
	b := &bank{answers: map[string]func() *http.Response{}}
	b.serves(historyFile, days("1999-12-31 USD=1.1 KRW=1600", "1999-12-30 USD=1.2 JPY=170", "1999-12-29 USD=1.3"))
	b.serves(dailyFile, days("1999-12-31 USD=1.1 KRW=1600"))
	rates := func(records []*eventsv1.ReferenceRecord) string {
		var fixings []*eventsv1.ReferenceRecord
		for _, rec := range records {
			if rec.GetFixing() != nil {
				fixings = append(fixings, rec)
			}
		}
		return listed(fixings)
	}
	synctest.Test(t, func(t *testing.T) { polling(t, b, whole, time.Minute) })
	for killed := range whole.records {
		synctest.Test(t, func(t *testing.T) {
			out := &memoryOutbox{records: append([]*eventsv1.ReferenceRecord(nil), whole.records[:killed]...)}
			polling(t, b, out, time.Minute)
			if got, want := rates(out.records), rates(whole.records); got != want {
				t.Errorf("killed after %d records, the log holds:\n%s\nwant:\n%s", killed, got, want)
			}
		})
	}
}

func TestAnUnchangedAnswerIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &memoryOutbox{}
		b.serves(historyFile, days("1999-12-31 USD=1.1"))
		b.serves(dailyFile, days("1999-12-31 USD=1.1"), "ETag", `"a"`)
		if stats := polling(t, b, out, 90*time.Minute); stats.Failures != 0 || time.Since(stats.Heard) > time.Hour {
			t.Errorf("stats = %+v, want a source that is heard", stats)
		}
		wantWritten(t, out.records, "ecb EUR/USD 1.1 1999-12-31", allFile+": 200, 1 rows", dailyFile+": 200, 1 rows", dailyFile+": 304, 0 rows")
	})
}

// What cannot be read goes to the dead letters once, is asked for again, and shows.
func TestAnUnreadableAnswerIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &memoryOutbox{}
		page := "<html>" + strings.Repeat("x", 100) + "</html>"
		b.serves(historyFile, page)
		b.serves(dailyFile, days("1999-12-31 USD=1.1"))
		p := newPoller(t, b, out, "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(80 * time.Second) // asked at once, and after 30 s; the third time comes after 90 s
		synctest.Wait()
		wantWritten(t, out.records, allFile+": 200, 0 rows, failed", allFile+": 200, 0 rows, failed")
		if stats := p.Stats(); stats.Err == nil || stats.Failures != 2 || !stats.Heard.IsZero() {
			t.Errorf("stats = %+v, want a source that fails", stats)
		}
		if len(out.dead) != 1 || out.dead[0].Reason != "undecodable" || string(out.dead[0].Payload) != page || out.dead[0].Source != "ecb" || out.dead[0].AdapterVersion == 0 {
			t.Errorf("dead letters = %v, want the page once", out.dead)
		}
		b.serves(historyFile, days("1999-12-31 USD=1.1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if stats := p.Stats(); stats.Err != nil || stats.Written != 1 {
			t.Errorf("stats = %+v, want a source that is well again", stats)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestARefusedRowHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &memoryOutbox{}
		// A date ahead of the clock would be the newest for ever.
		b.serves(historyFile, days("2100-01-01 USD=7", "2000-01-01 USD=1.1 JPY=0"))
		b.serves(dailyFile, days("2000-01-01 USD=1.1"))
		stats := polling(t, b, out, time.Minute)
		wantWritten(t, out.records, "ecb EUR/USD 1.1 2000-01-01", allFile+": 200, 1 rows", dailyFile+": 200, 1 rows")
		if len(out.dead) != 1 || stats.Refused != 2 || stats.ByReason[schemas.Future] != 1 || stats.ByReason[schemas.NonPositive] != 1 || stats.Err != nil {
			t.Errorf("%d dead letters, stats %+v; want one of two rows, of the future and of a rate of 0", len(out.dead), stats)
		}
	})
}

// A bank that refuses is asked less and less often, and not before its Retry-After has passed.
func TestAFailingSourceIsAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &memoryOutbox{}
		b.status(historyFile, http.StatusServiceUnavailable, "\xff\xfe", "Retry-After", "7200")
		polling(t, b, out, 110*time.Minute)
		if len(b.asked) != 1 {
			t.Errorf("asked %d times within Retry-After, want once", len(b.asked))
		}
		for _, rec := range out.records {
			if rec.GetFetch().GetError() == "" {
				t.Errorf("written: %v, want failed requests only", rec)
			}
		}
		if n := len(out.records); n < 3 || n > 9 {
			t.Errorf("%d outcomes of 110 minutes, want doubling pauses between them", n)
		}
		b.status(historyFile, http.StatusNotFound, "gone")
		b.asked = nil
		polling(t, b, out, 12*time.Hour)
		if n := len(b.asked); n < 12 || n > 20 {
			t.Errorf("asked %d times in 12 hours, want about once an hour", n)
		}
	})
}
