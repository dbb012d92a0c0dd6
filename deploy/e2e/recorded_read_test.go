package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/decode"
)

// recordedFrame is one message that a venue sent.
type recordedFrame struct {
	// at is when it was received, Unix nanoseconds; 0 if the recording does not say.
	at     int64
	bytes  []byte
	binary bool
}

// readFrames reads what a venue sent, in any of the framings of recordings: sessions ("t", "d", "x"),
// single messages ("received_at", "message") and transcripts (>, <, =).
func readFrames(t *testing.T, path string) (frames []recordedFrame) {
	t.Helper()
	text := readPacked(t, path)
	if first := bytes.TrimSpace(text); len(first) > 0 && bytes.IndexByte([]byte("><="), first[0]) >= 0 {
		return readTranscript(text)
	}
	for line := range bytes.Lines(text) {
		var l struct {
			Time       json.Number `json:"t"`
			Direction  string      `json:"d"`
			Text       string      `json:"x"`
			Packed     *string     `json:"b"`
			Binary     bool        `json:"bin"`
			ReceivedAt time.Time   `json:"received_at"`
			Message    json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v in %.200s", path, err, line)
		}
		switch {
		case l.Message != nil:
			frames = append(frames, recordedFrame{at: l.ReceivedAt.UnixNano(), bytes: bytes.Clone(l.Message)})
		case l.Direction == "in" && l.Packed != nil:
			b, err := base64.StdEncoding.DecodeString(*l.Packed)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			frames = append(frames, recordedFrame{seconds(t, l.Time), b, true})
		case l.Direction == "in":
			frames = append(frames, recordedFrame{seconds(t, l.Time), []byte(l.Text), l.Binary})
		}
	}
	return frames
}

// readTranscript reads answers (<) and updates (=), each over one or more lines. |1| means the
// number of a request.
func readTranscript(text []byte) (frames []recordedFrame) {
	var message []byte
	sent := true
	flush := func() {
		if b := bytes.TrimSpace(bytes.ReplaceAll(message, []byte("|1|"), []byte("1"))); len(b) > 0 && !sent {
			frames = append(frames, recordedFrame{bytes: bytes.Clone(b)})
		}
		message = message[:0]
	}
	for line := range bytes.Lines(text) {
		if bytes.IndexByte([]byte("><="), line[0]) >= 0 {
			flush()
			sent, line = line[0] == '>', line[1:]
		}
		message = append(message, line...)
	}
	flush()
	return frames
}

func readPacked(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, ".gz") {
		var unpacked *gzip.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, err = io.ReadAll(unpacked)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// seconds reads Unix seconds with all their digits, as nanoseconds.
func seconds(t *testing.T, text json.Number) int64 {
	t.Helper()
	whole, fraction, _ := strings.Cut(text.String(), ".")
	n, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64)
	if err != nil {
		t.Fatalf("%q is no time", text)
	}
	return n
}

// readListing finds the recorded answer to a path of the venue's list of instruments; "" if there is none.
func readListing(t *testing.T, session, path string) string {
	t.Helper()
	name, _, _ := strings.Cut(filepath.Base(session), ".")
	file := filepath.Join(filepath.Dir(session), name+".instruments.jsonl.gz")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	path, _, _ = strings.Cut(path, "?")
	for line := range bytes.Lines(readPacked(t, file)) {
		var l struct {
			Direction string `json:"d"`
			URL       string `json:"u"`
			Text      string `json:"x"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if u, err := url.Parse(l.URL); err == nil && l.Direction == "http" && strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(path, "/") {
			return l.Text
		}
	}
	return ""
}

// decodedLine is what `marketlog decode` prints of one event, or of a message that cannot be read.
type decodedLine struct {
	Kind, Reason                string
	VenueSymbol, Base, Quote    *string
	Price, Size, Bid, Ask, Last string
	VolumeBase, VolumeQuote     string
	Side, ID                    string
	EventTime, ReceivedTime     *time.Time
	Snapshot                    bool
}

// decodeFrames is what `marketlog decode` prints of a session of these frames.
func decodeFrames(t *testing.T, venue adapter.Venue, frames []recordedFrame) (lines []decodedLine) {
	t.Helper()
	var session, stdout, stderr bytes.Buffer
	for _, f := range frames {
		line := map[string]any{"t": json.Number(fmt.Sprintf("%d.%09d", f.at/1e9, f.at%1e9)), "d": "in", "x": string(f.bytes), "bin": f.binary}
		if f.binary {
			delete(line, "x")
			line["b"] = f.bytes
		}
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		session.Write(append(b, '\n'))
	}
	options := decode.Options{Source: venue.Slug, File: "-"}
	if code := decode.Run(context.Background(), options, []adapter.Venue{venue}, nil, &session, &stdout, &stderr); code != 0 {
		t.Fatalf("decoding: exit %d: %s", code, &stderr)
	}
	for line := range bytes.Lines(stdout.Bytes()) {
		var l decodedLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}
