package exchanges

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
)

// TestVenuesReadTheirWire runs testdata/<venue>/*.txt. A script is a list of messages, each
// followed by what the codec makes of it, indented:
//
//	ws {…}              a frame; "conn" begins a new connection
//	bin …               a binary frame, in base64
//	rest TARGET {…}     the answer to an HTTP request
//	list PATH {…}       an answer with the list of instruments
//	    trade SYMBOL price=… size=… side=… id=… time=… snapshot
//	    ticker SYMBOL bid=… ask=… last=… base=… quote=… seq=… time=… snapshot
//	    candle SYMBOL start=… interval=… o=… h=… l=… c=… v=… state=… time=…
//	    instrument SYMBOL BASE/QUOTE aliases
//	    count STREAM N, send TEXT, notice TEXT
//	    refused REASON (a row), error REASON (the whole message)
//
// A message with nothing below it says nothing. A line that begins with # is a comment.
func TestVenuesReadTheirWire(t *testing.T) {
	for _, v := range List() {
		scripts, err := filepath.Glob(filepath.Join("testdata", v.Slug, "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if len(scripts) == 0 {
			t.Errorf("venue %s has no script in testdata/%s", v.Slug, v.Slug)
		}
		for _, path := range scripts {
			t.Run(v.Slug+"/"+filepath.Base(path), func(t *testing.T) { runScript(t, v, path) })
		}
	}
}

func runScript(t *testing.T, v producers.Venue, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	codec := v.NewCodec()
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := i + 1
		var want []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
			i++
			want = append(want, strings.TrimSpace(lines[i]))
		}
		verb, rest, _ := strings.Cut(line, " ")
		var got []string
		switch verb {
		case "conn":
			codec = v.NewCodec()
		case "ws":
			var out producers.Out
			err := codec.Decode(producers.Frame{Bytes: []byte(rest)}, &out)
			got = spell(&out, err)
		case "bin":
			frame, err := base64.StdEncoding.DecodeString(rest)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, at, err)
			}
			var out producers.Out
			err = codec.Decode(producers.Frame{Bytes: frame, Binary: true}, &out)
			got = spell(&out, err)
		case "rest":
			target, body, _ := strings.Cut(rest, " ")
			var out producers.Out
			err := v.DecodeREST(target, []byte(body), &out)
			got = spell(&out, err)
		case "list":
			target, body, _ := strings.Cut(rest, " ")
			list, err := v.Instruments(target, []byte(body))
			for _, in := range list {
				got = append(got, strings.TrimSpace(fmt.Sprintf("instrument %s %s/%s %s", in.Symbol, in.Base, in.Quote, strings.Join(in.Aliases, " "))))
			}
			if err != nil {
				got = append(got, "error "+string(producers.ReasonOf(err)))
			}
		default:
			t.Fatalf("%s:%d: unknown verb %q", path, at, verb)
		}
		if g, w := strings.Join(got, "\n    "), strings.Join(want, "\n    "); g != w {
			t.Errorf("%s:%d: %.100s\n  got:\n    %s\n  want:\n    %s", path, at, line, g, w)
		}
	}
}

func spell(out *producers.Out, err error) []string {
	var lines []string
	for i := range out.Events {
		lines = append(lines, spellEvent(&out.Events[i]))
	}
	for _, e := range out.Refused {
		lines = append(lines, "refused "+string(producers.ReasonOf(e)))
	}
	for _, c := range out.Counts {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("count %s %s", c.Stream, c.N)), " "))
	}
	for _, f := range out.Replies {
		lines = append(lines, "send "+string(f.Bytes))
	}
	for _, n := range out.Notices {
		lines = append(lines, "notice "+n)
	}
	if err != nil {
		lines = append(lines, "error "+string(producers.ReasonOf(err)))
	}
	return lines
}

func spellEvent(e *producers.Event) string {
	parts := []string{string(e.Kind)}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	stamp := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
	}
	add("", e.Symbol)
	add("start=", stamp(e.Start))
	add("interval=", e.Interval)
	for _, f := range []struct {
		name  string
		value producers.Num
	}{
		{"price=", e.Price},
		{"size=", e.Size},
		{"side=", producers.Num(e.Side)},
		{"id=", e.ID},
		{"bid=", e.Bid},
		{"ask=", e.Ask},
		{"last=", e.Last},
		{"base=", e.VolumeBase},
		{"quote=", e.VolumeQuote},
		{"seq=", e.Sequence},
		{"o=", e.OpenPrice},
		{"h=", e.High},
		{"l=", e.Low},
		{"c=", e.ClosePrice},
		{"v=", e.Volume},
		{"state=", producers.Num(e.State)},
	} {
		add(f.name, string(f.value))
	}
	add("time=", stamp(e.Time))
	if e.Snapshot {
		add("", "snapshot")
	}
	return strings.Join(parts, " ")
}

// TestDeclarationsAreComplete holds what the engine takes for granted.
func TestDeclarationsAreComplete(t *testing.T) {
	seen := ""
	for _, v := range List() {
		if v.Slug <= seen {
			t.Errorf("%s comes after %s: the list is not in order, or names one twice", v.Slug, seen)
		}
		seen = v.Slug
		for what, ok := range map[string]bool{
			"name, version":      v.Name != "" && v.Version > 0,
			"URLs":               strings.HasPrefix(v.URLs.Stream, "wss://") && strings.HasPrefix(v.URLs.REST, "https://"),
			"terms of countries": strings.HasPrefix(v.Countries.Terms, "https://"),
			"limits": v.Limits.Connects > 0 && v.Limits.ConnectsPer > 0 && v.Limits.MarketsPerSocket > 0 &&
				v.Limits.Messages > 0 && v.Limits.Requests > 0,
			"silence":   v.Silence > v.Heartbeat.Every || v.Silence >= 10*time.Second,
			"listing":   len(v.Listing) > 0 && v.Instruments != nil,
			"functions": v.Subscribe != nil && v.NewCodec != nil && v.DecodeREST != nil,
		} {
			if !ok {
				t.Errorf("venue %s lacks: %s", v.Slug, what)
			}
		}
	}
}

// FuzzCodecs feeds every venue anything at all. A codec must not panic, must not emit what
// Out.Add would refuse, and must answer the same for the same bytes.
func FuzzCodecs(f *testing.F) {
	for _, v := range List() {
		scripts, _ := filepath.Glob(filepath.Join("testdata", v.Slug, "*.txt"))
		for _, path := range scripts {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				target, payload := "", []byte(rest)
				switch verb {
				case "ws":
				case "bin":
					if payload, err = base64.StdEncoding.DecodeString(rest); err != nil {
						f.Fatal(err)
					}
				case "rest", "list":
					target, rest, _ = strings.Cut(rest, " ")
					payload = []byte(rest)
				default:
					continue
				}
				f.Add(target, payload, verb == "bin")
			}
		}
	}
	venues := List()
	f.Fuzz(func(t *testing.T, target string, b []byte, binary bool) {
		for _, v := range venues {
			read := func() string {
				var out producers.Out
				frame, err := producers.Unpack(producers.Frame{Bytes: b, Binary: binary})
				if err == nil {
					err = v.NewCodec().Decode(frame, &out)
				}
				lines := spell(&out, err)
				out.Reset()
				lines = append(lines, spell(&out, v.DecodeREST(target, b, &out))...)
				list, err := v.Instruments(target, b)
				return fmt.Sprint(lines, list, err)
			}
			if first, second := read(), read(); first != second {
				t.Errorf("%s reads %q as %s, then as %s", v.Slug, b, first, second)
			}
		}
	})
}
