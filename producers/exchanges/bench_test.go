package exchanges

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
)

// BenchmarkFeed_EachVenue decodes the trades and tickers among a venue's samples, as they come from the wire: what a frame costs.
func BenchmarkFeed_EachVenue(b *testing.B) {
	for _, v := range List() {
		b.Run(v.Slug, func(b *testing.B) {
			frames := pricedFrames(b, v)
			var out adapter.Out
			b.ReportAllocs()
			for b.Loop() {
				codec := v.NewCodec()
				for _, f := range frames {
					out.Reset()
					if err := codec.Decode(f, &out); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(frames)), "ns/frame")
		})
	}
}

// BenchmarkAnswers_EachVenue decodes the tickers and candles among the samples of a venue's HTTP interface.
func BenchmarkAnswers_EachVenue(b *testing.B) {
	for _, v := range List() {
		type answer struct {
			target string
			body   []byte
		}
		var answers []answer
		for _, line := range sampleLines(b, v.Slug) {
			verb, rest, _ := strings.Cut(line, " ")
			target, body, _ := strings.Cut(rest, " ")
			var out adapter.Out
			if verb == "rest" && v.DecodeREST(target, []byte(body), &out) == nil && len(out.Events) > 0 {
				answers = append(answers, answer{target, []byte(body)})
			}
		}
		b.Run(v.Slug, func(b *testing.B) {
			var out adapter.Out
			b.ReportAllocs()
			for b.Loop() {
				for _, a := range answers {
					out.Reset()
					if err := v.DecodeREST(a.target, a.body, &out); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(answers)), "ns/answer")
		})
	}
}

// pricedFrames are the frames among a venue's samples that its live codec reads trades and tickers from, with those that open their
// channels.
func pricedFrames(b *testing.B, v adapter.Venue) (frames []adapter.Frame) {
	codec := v.NewCodec()
	for _, line := range sampleLines(b, v.Slug) {
		verb, rest, _ := strings.Cut(line, " ")
		f := adapter.Frame{Bytes: []byte(rest)}
		switch verb {
		case "ws":
		case "bin":
			payload, err := base64.StdEncoding.DecodeString(rest)
			if err != nil {
				b.Fatal(err)
			}
			f = adapter.Frame{Bytes: payload, Binary: true}
		default:
			continue
		}
		var out adapter.Out
		err := codec.Decode(f, &out)
		priced := len(out.Events) > 0 && len(out.Refused) == 0 && out.Events[0].Kind != adapter.Candle
		if err == nil && (priced || strings.HasPrefix(rest, `{"event":"subscribed"`)) {
			frames = append(frames, f)
		}
	}
	return frames
}

func sampleLines(b testing.TB, slug string) (lines []string) {
	scripts, err := filepath.Glob(filepath.Join("testdata", slug, "*.txt"))
	if err != nil || len(scripts) == 0 {
		b.Fatalf("no samples of %s: %v", slug, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return lines
}
