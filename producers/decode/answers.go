package decode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// answers prints what a polled source answered: one file as it was sent, or recorded answers in the framings
// of recordings.
type answers struct {
	ctx    context.Context
	source poll.Source
	out    *json.Encoder
}

type fiatLine struct {
	Kind   string  `json:"kind"`
	Source string  `json:"source"`
	Base   string  `json:"base"`
	Quote  string  `json:"quote"`
	Rate   string  `json:"rate"`
	Date   *string `json:"date"`
}

func (a *answers) read(r io.Reader) error {
	plain, err := gunzip(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxLine+1))
	if err != nil {
		return err
	}
	if len(text) > maxLine {
		return a.refuse(producers.Unreadable("more than %d bytes", maxLine), 0)
	}
	if recordedAnswers(text) {
		return read(bytes.NewReader(text), a.input, func(err error) error { return a.refuse(err, 0) })
	}
	if path, body, ok := requested(text); ok {
		return a.answer(path, body, 0)
	}
	return a.answer("", text, 0)
}

// recordedAnswers distinguishes a recording from an answer: its first value is in one of the framings.
func recordedAnswers(text []byte) bool {
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&first) != nil {
		return false
	}
	_, _, err := parse(first)
	return err == nil
}

func (a *answers) input(in input) error {
	switch {
	case in.kind != answerInput:
		return nil
	case in.status >= 300:
		return a.refuse(producers.Unreadable("the source answered with status %d", in.status), in.frame.Received)
	}
	return a.answer(in.target, in.frame.Bytes, in.frame.Received)
}

func (a *answers) answer(target string, body []byte, received int64) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	var readings poll.Readings
	if err := a.source.Decode(target, body, &readings); err != nil {
		return a.refuse(err, received)
	}
	for _, f := range readings.Fixings {
		if f.Now && received != 0 {
			f.Date = time.Unix(0, received).UTC().Format(time.DateOnly)
		}
		if err := a.out.Encode(fiatLine{"fiat", a.source.Slug, f.Base, f.Quote, f.Rate, known(f.Date)}); err != nil {
			return fmt.Errorf("printing a rate: %w", err)
		}
	}
	if err := a.records(readings.Records); err != nil {
		return err
	}
	for _, err := range readings.Refused {
		if err := a.refuse(err, received); err != nil {
			return err
		}
	}
	return nil
}

func (a *answers) refuse(err error, received int64) error {
	return a.out.Encode(refusal(a.source.Slug, err, received))
}
