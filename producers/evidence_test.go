package producers_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/sources"
)

// declaredEvidence is what a venue or source reports of one of its parts.
type declaredEvidence struct {
	slug, part string
	evidence   producers.Evidence
	// has means that there is such a part.
	has bool
}

func evidenceOf(v adapter.Venue) []declaredEvidence {
	e := v.Evidence
	return []declaredEvidence{
		{v.Slug, "markets", e.Markets, true}, {v.Slug, "trades", e.Trades, true}, {v.Slug, "tickers", e.Tickers, v.Polled == 0},
		{v.Slug, "polled", e.Polled, v.Tickers != nil}, {v.Slug, "candles", e.Candles, v.History != nil},
	}
}

func allEvidence() (all []declaredEvidence) {
	for _, v := range exchanges.List() {
		all = append(all, evidenceOf(v)...)
	}
	for _, s := range sources.List() {
		for _, f := range s.Feeds {
			all = append(all, declaredEvidence{s.Slug, f.Name, f.Evidence, true})
		}
		if s.Past != nil {
			all = append(all, declaredEvidence{s.Slug, "past", s.Past.Evidence, true})
		}
	}
	return all
}

// Every feed says how its format is known, and with what: a page for what was read, a recording for what was received.
func TestEveryFeedStatesHowItsFormatIsKnown(t *testing.T) {
	for _, d := range allEvidence() {
		e := d.evidence
		if !d.has {
			if !reflect.DeepEqual(e, producers.Evidence{}) {
				t.Errorf("%s has no %s, and says how their format is known", d.slug, d.part)
			}
			continue
		}
		page, err := url.Parse(e.Page)
		switch {
		case e.Standing == producers.IsRecorded && e.Recording != "" && e.Page == "":
		case (e.Standing == producers.IsDocumented || e.Standing == producers.IsGuessed) && e.Recording == "" && err == nil && page.Scheme == "https":
		default:
			t.Errorf("%s, %s: %+v, want a recording, or a page of https", d.slug, d.part, e)
		}
		// One client alone may be wrong about a unit, and so may a page.
		if alone := e.Standing != producers.IsRecorded && e.ReadBy() < 2; alone != (e.Sought != "") {
			t.Errorf("%s, %s: %+v, want two clients, or what was searched for without finding them", d.slug, d.part, e)
		}
		for i, client := range e.Clients {
			if !strings.HasPrefix(client, "https://") || client == e.Page || slices.Contains(e.Clients[:i], client) {
				t.Errorf("%s, %s: client %q, want a page of its own", d.slug, d.part, client)
			}
		}
	}
}

// What counts as recorded is among the recordings that the other tests compare with what an independent reader found in
// them, and says what the part is read for.
func TestRecordedFormatsAreDecoded(t *testing.T) {
	root, answers := expectedAnswers(t)
	decoded := func(t *testing.T, source, file string) (kinds []string) {
		var stdout, stderr bytes.Buffer
		options := decode.Options{Source: source, File: filepath.Join(root, file)}
		if code := decode.Run(context.Background(), options, exchanges.List(), sources.List(), nil, &stdout, &stderr); code != 0 {
			t.Fatalf("decode %s: exit %d: %s", file, code, &stderr)
		}
		for scanner := bufio.NewScanner(&stdout); scanner.Scan(); {
			var line struct{ Kind string }
			mustParse(t, scanner.Bytes(), &line)
			kinds = append(kinds, line.Kind)
		}
		return kinds
	}
	want := map[string]string{"trades": "trade", "tickers": "ticker", "polled": "ticker", "candles": "candle"}
	for _, d := range allEvidence() {
		if d.evidence.Standing != producers.IsRecorded {
			continue
		}
		t.Run(d.slug+"/"+d.part, func(t *testing.T) {
			file := d.evidence.Recording
			if _, compared := answers[file]; !compared {
				t.Fatalf("expected.json says nothing of %s", file)
			}
			venue, isVenue := exchanges.Find(d.slug)
			switch {
			case isVenue && d.part == "markets":
				if n := recordedMarkets(t, venue, filepath.Join(root, file)); n == 0 {
					t.Errorf("%s names no market", file)
				}
			case isVenue:
				if kinds := decoded(t, d.slug, file); !slices.Contains(kinds, want[d.part]) {
					t.Errorf("%s has no %s in it, but %q", file, want[d.part], kinds)
				}
			default:
				if kinds := decoded(t, d.slug, file); len(kinds) == 0 || slices.Contains(kinds, "error") {
					t.Errorf("%s is read as %q", file, kinds)
				}
			}
		})
	}
}

// recordedMarkets counts the markets in the recorded answers with a venue's instruments.
func recordedMarkets(t *testing.T, v adapter.Venue, path string) (n int) {
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row struct{ D, U, X string }
		if json.Unmarshal([]byte(line), &row) != nil || row.D != "http" {
			continue
		}
		if list, err := v.Instruments(row.U, []byte(row.X)); err == nil {
			n += len(list)
		}
	}
	return n
}
