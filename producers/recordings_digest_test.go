package producers_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// TestRecordingsDecodeAsBefore holds every byte that decode prints of every recording of a venue against the digests in
// testdata/decoded.txt, sessions also with the list of instruments that was recorded beside them. The expectations of
// TestRecordingsDecodeAsExpected leave out what no other reader has, such as errors in words, volumes and states of candles; a change
// of an adapter that is to change nothing is seen here. Where a change is meant, DIGESTS=write writes the file.
func TestRecordingsDecodeAsBefore(t *testing.T) {
	root := streamtest.Recordings(t)
	text, err := os.ReadFile(filepath.Join(root, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Files map[string]json.RawMessage }
	mustParse(t, text, &all)
	var got []string
	for _, file := range slices.Sorted(maps.Keys(all.Files)) {
		var head struct{ Kind, Exchange string }
		mustParse(t, all.Files[file], &head)
		slug := recordedAs[cmp.Or(strings.ToUpper(head.Exchange), head.Kind)]
		if _, ok := exchanges.Find(slug); !ok {
			continue
		}
		// cryptofeed/KRAKEN.ws.48.0.jsonl.gz has its instruments in cryptofeed/KRAKEN.instruments.jsonl.gz.
		name, _, session := strings.Cut(file, ".ws.")
		instruments := filepath.Join(root, name+".instruments.jsonl.gz")
		lists := []string{""}
		if _, err := os.Stat(instruments); session && err == nil {
			lists = append(lists, instruments)
		}
		for _, list := range lists {
			var stdout, stderr bytes.Buffer
			o := decode.Options{Source: slug, File: filepath.Join(root, file), Instruments: list}
			how := "alone"
			if list != "" {
				how = "with-instruments"
			}
			if code := decode.Run(context.Background(), o, exchanges.List(), nil, nil, &stdout, &stderr); code != 0 {
				how += "-fails" // some recorded lists are of a generation that is retired
			}
			got = append(got, fmt.Sprintf("%s %s %s %d %.16x", file, slug, how, bytes.Count(stdout.Bytes(), []byte("\n")), sha256.Sum256(stdout.Bytes())))
		}
	}
	path := filepath.Join("testdata", "decoded.txt")
	if os.Getenv("DIGESTS") == "write" {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("no longer decoded so: file, venue, instruments, lines, digest: %s", line)
		}
	}
	if len(got) != len(want) || len(got) < 80 {
		t.Errorf("%d recordings are decoded, %d digests are known", len(got), len(want))
	}
}
