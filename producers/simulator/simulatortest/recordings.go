package simulatortest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// Parse decodes the messages that are JSON, numbers as they are spelled, and returns those that want picks; nil picks all.
func Parse(t *testing.T, messages [][]byte, want func(any) bool) []any {
	t.Helper()
	var picked []any
	for _, b := range messages {
		decoder := json.NewDecoder(bytes.NewReader(b))
		decoder.UseNumber()
		var message any
		if err := decoder.Decode(&message); err != nil {
			continue // "pong", or a frame cut off
		}
		if want == nil || want(message) {
			picked = append(picked, message)
		}
	}
	return picked
}

// Excerpt is the beginning of a message, for a failed test.
func Excerpt(message any) string {
	b, _ := json.Marshal(message)
	return string(b[:min(len(b), 900)])
}

// RecordedMessages reads what a venue sent from a recording, whatever its framing.
func RecordedMessages(t *testing.T, path string) (messages [][]byte) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(path, ".gz")
	switch {
	case strings.HasSuffix(name, ".jsonl"):
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var line struct {
				D, X    string
				B       []byte
				Message json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			switch {
			case line.Message != nil:
				messages = append(messages, line.Message)
			case line.D != "in" && line.D != "http":
			case line.B != nil:
				messages = append(messages, Inflate(line.B))
			default:
				messages = append(messages, []byte(line.X))
			}
		}
	case strings.HasSuffix(name, ".txt"):
		text = bytes.ReplaceAll(text, []byte("|1|"), []byte("1"))
		for {
			text = bytes.TrimSpace(text)
			if len(text) == 0 {
				break
			}
			sender := text[0]
			decoder := json.NewDecoder(bytes.NewReader(text[1:]))
			var message json.RawMessage
			if err := decoder.Decode(&message); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			text = text[1+decoder.InputOffset():]
			if sender != '>' {
				messages = append(messages, message)
			}
		}
	default:
		var answer struct{ Body string }
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, []byte(answer.Body))
	}
	return messages
}

// Inflate unpacks what is compressed by gzip, and leaves everything else.
func Inflate(b []byte) []byte {
	if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if text, err := io.ReadAll(r); err == nil {
			return text
		}
	}
	return b
}
