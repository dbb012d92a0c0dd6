package decode

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/schemas"
)

// maxLine bounds a line of a recording. Lines are held whole, one at a time.
const maxLine = 64 << 20

// input is one recorded thing.
type input struct {
	kind inputKind
	// frame is what arrived on the WebSocket.
	frame adapter.Frame
	// An HTTP answer: what was asked, and the body in frame.Bytes.
	target string
	status int
}

type inputKind int

const (
	frameInput inputKind = iota
	answerInput
	// connectInput begins a new connection.
	connectInput
)

// read hands every input of r to visit, in order, whatever framing r is in. What cannot be read
// goes to bad and does not stop it; the error is of r itself, or of visit.
func read(r io.Reader, visit func(input) error, bad func(error) error) error {
	plain, err := gunzip(r)
	if err != nil {
		return err
	}
	first, err := firstByte(plain)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if strings.IndexByte("><=", first) >= 0 {
		return readTranscript(plain, visit, bad)
	}
	return readLines(plain, visit, bad)
}

// gunzip opens r if it is compressed, which its first bytes show.
func gunzip(r io.Reader) (*bufio.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	magic, err := buffered.Peek(2)
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return buffered, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return bufio.NewReaderSize(unzipped, 1<<16), nil
}

// firstByte looks at the first byte that is not white space, and skips what is.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n", b) < 0 {
			return b, r.UnreadByte()
		}
	}
}

var errLong = fmt.Errorf("%w: line of more than %d bytes", schemas.Undecodable, maxLine)

// line reads one line without its end into buf. A line that is too long is skipped with errLong.
func line(r *bufio.Reader, buf []byte) ([]byte, error) {
	buf = buf[:0]
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) > maxLine {
			long = true
			buf = buf[:0]
		}
		if !long {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !(errors.Is(err, io.EOF) && (len(buf) > 0 || long)):
			return nil, err
		case long:
			return nil, errLong
		default:
			return bytes.TrimRight(buf, "\r\n"), nil
		}
	}
}

// readLines reads one JSON object a line, of any of three framings; an object that does not end
// on its first line is a single answer spread over many.
func readLines(r *bufio.Reader, visit func(input) error, bad func(error) error) error {
	var buf []byte
	for first := true; ; first = false {
		text, err := line(r, buf)
		switch {
		case errors.Is(err, errLong):
			if err := bad(err); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a line: %w", err)
		}
		buf = text
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if first && !json.Valid(text) {
			rest, err := io.ReadAll(io.LimitReader(r, maxLine))
			if err != nil {
				return fmt.Errorf("reading an answer: %w", err)
			}
			if whole := append(append(text, '\n'), rest...); json.Valid(whole) {
				return report(whole, visit, bad)
			}
			// Not one object: its first line is broken, the others may be whole.
			if err := report(text, visit, bad); err != nil {
				return err
			}
			r = bufio.NewReader(io.MultiReader(bytes.NewReader(rest), r))
			buf = nil
			continue
		}
		if err := report(text, visit, bad); err != nil {
			return err
		}
	}
}

func report(text []byte, visit func(input) error, bad func(error) error) error {
	in, ok, err := parse(text)
	switch {
	case err != nil:
		return bad(err)
	case !ok:
		return nil
	}
	return visit(in)
}

// parse reads one object. ok is false for what a recording holds beside what was received.
func parse(text []byte) (in input, ok bool, err error) {
	var o struct {
		// Sessions: time received, direction, URL, text, binary, text that came in a binary frame.
		Time      json.Number `json:"t"`
		Direction string      `json:"d"`
		Address   string      `json:"u"`
		Text      *string     `json:"x"`
		Binary    *string     `json:"b"`
		WasBinary bool        `json:"bin"`
		// Single messages.
		ReceivedAt string          `json:"received_at"`
		Message    json.RawMessage `json:"message"`
		// HTTP answers.
		URL        string  `json:"url"`
		Status     int     `json:"status"`
		RecordedAt string  `json:"recorded_at"`
		Body       *string `json:"body"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return in, false, producers.Unreadable("parsing a line: %w", err)
	}
	switch {
	case o.Direction != "":
		in.frame.Received = max(0, producers.Unix(producers.Num(o.Time), time.Second))
		switch o.Direction {
		case "in":
			in.kind = frameInput
		case "http":
			in.kind, in.target, in.status = answerInput, o.Address, 200
		case "conn":
			in.kind = connectInput
			return in, true, nil
		default:
			return in, false, nil
		}
		switch {
		case o.Text != nil:
			in.frame.Bytes, in.frame.Binary = []byte(*o.Text), o.WasBinary
		case o.Binary != nil:
			in.frame.Binary = true
			if in.frame.Bytes, err = base64.StdEncoding.DecodeString(*o.Binary); err != nil {
				return in, false, producers.Unreadable("reading a binary frame: %w", err)
			}
		default:
			return in, false, producers.Unreadable("line without a frame")
		}
		return in, true, nil
	case o.Message != nil:
		in.frame = adapter.Frame{Bytes: o.Message, Received: max(0, producers.RFC3339(o.ReceivedAt))}
		return in, true, nil
	case o.Body != nil:
		in.kind, in.target, in.status = answerInput, o.URL, o.Status
		in.frame = adapter.Frame{Bytes: []byte(*o.Body), Received: recorded(o.RecordedAt)}
		return in, true, nil
	}
	return in, false, producers.Unreadable("line of no known framing")
}

// recorded reads the time of an HTTP answer, in the form of the Date header or RFC 3339.
func recorded(s string) int64 {
	if t, err := time.Parse(time.RFC1123, s); err == nil {
		return t.UnixNano()
	}
	return max(0, producers.RFC3339(s))
}

// readTranscript reads "> sent", "< answered" and "= updated", each message over one or more
// lines. |1| represents a request id. They are written by hand, some with comments and bare keys.
func readTranscript(r *bufio.Reader, visit func(input) error, bad func(error) error) error {
	var message, buf []byte
	marker := byte(0)
	flush := func() error {
		text := bytes.TrimSpace(bytes.ReplaceAll(message, []byte("|1|"), []byte("1")))
		message = message[:0]
		if len(text) == 0 || marker == '>' {
			return nil
		}
		if !json.Valid(text) {
			text = strict(text)
		}
		return visit(input{frame: adapter.Frame{Bytes: text}})
	}
	for {
		text, err := line(r, buf)
		switch {
		case errors.Is(err, errLong):
			if err := bad(err); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			return flush()
		case err != nil:
			return fmt.Errorf("reading a line: %w", err)
		}
		buf = text
		if len(text) > 0 && strings.IndexByte("><=", text[0]) >= 0 {
			if err := flush(); err != nil {
				return err
			}
			marker, text = text[0], text[1:]
		}
		if len(message)+len(text) > maxLine {
			message = message[:0]
			if err := bad(errLong); err != nil {
				return err
			}
			continue
		}
		message = append(append(message, text...), '\n')
	}
}

// instruments reads a venue's list from a recording, or from the venue's answer as it came.
func instruments(r io.Reader, v adapter.Venue) (adapter.Instruments, error) {
	text, err := func() ([]byte, error) {
		plain, err := gunzip(r)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(plain, math.MaxInt32))
	}()
	if err != nil {
		return nil, err
	}
	if list, err := v.Instruments("", text); err == nil && len(list) > 0 {
		return adapter.Index(list), nil
	}
	var all []adapter.Instrument
	var problems []error
	err = read(bytes.NewReader(text), func(in input) error {
		if in.kind != answerInput {
			return nil
		}
		list, err := v.Instruments(in.target, in.frame.Bytes)
		all = append(all, list...)
		problems = append(problems, err)
		return nil
	}, func(err error) error {
		problems = append(problems, err)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no instruments of %s in it: %w", v.Slug, errors.Join(problems...))
	}
	return adapter.Index(all), err
}
