// Package foldtest runs folds by plain-text scripts that read as their specification:
//
//	# Why this must be so.
//	clock kraken,okx 10:00:00
//	trade kraken XBT/USD XBT USD 100 2
//	----
//	trade kraken XBT/USD bitcoin/USD 100 2 rate 1
//
// A script is a list of cases, parted by empty lines. Each case gives inputs, a line "----", and
// what they put out. A case begins with a new fold, unless its first line is "continue". With the
// flag -update the expected part is rewritten.
//
// Times are of one day, "10:00:00.5". What follows every command is optional and has the form
// name=value. A field that is "-" is empty. Inputs of ticks.raw.v1:
//
//	clock PRODUCERS FROM [TO] [epoch=]       one record each, every second from FROM to TO
//	trade VENUE SYMBOL BASE QUOTE PRICE SIZE [SIDE] [id=] [at=] [heard=]
//	quote VENUE SYMBOL BASE QUOTE BID ASK [id=] [at=] [heard=]
//	ticker VENUE SYMBOL BASE QUOTE LAST [bid=] [ask=] [volume=] [turnover=] [id=] [at=] [heard=]
//	gap VENUE SYMBOL REASON FROM TO [missed=]
//	control ACTION VIEW GENERATION
//	raw HEX                                  a record of these bytes
//	rate QUOTE USD TIME [offset=]            the newest rate of a quote asset from here on
//
// at is the event time, "-" for a venue that sends none; heard is the ingest time; both default to
// the newest time that the script named. Without an id every tick is another event.
//
// Inputs of ticks.v1 are the same trade, quote, ticker and control, with rate= (the USD rate of a
// quote other than USD), flags= (as schemas.Flag spells them) and origin= (an input partition of
// ticks.raw.v1), and instead of clock
//
//	pulse ORIGIN NOW [WATERMARK]
//
// and, for a fold that follows the median, a published price and the venues that were accepted in it:
//
//	price TIME SYMBOL PRICE [VENUES] [refused=VENUES] [reason=]
package foldtest

import (
	"flag"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/processors"
)

var update = flag.Bool("update", false, "write the expected part of the scripts anew")

// Folder is where scripts lie, an *os.Root: packages beneath processors open no files themselves.
type Folder interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, content []byte, mode fs.FileMode) error
}

// Script says what a script is run on.
type Script struct {
	// New makes the fold.
	New func() processors.Fold
	// Topic is the fold's input, ticks.raw.v1 or ticks.v1.
	Topic string
	// Rates takes what the command rate gives; nil for folds that need none.
	Rates *Rates
	// Pulses lists the pulses that the fold puts out; else they are left out, for they come every second.
	Pulses bool
}

const divider = "----"

// Run runs one script; every case is a subtest, named by the first line of its comment.
func Run(t *testing.T, folder Folder, name string, s Script) {
	t.Helper()
	RunCases(t, folder, name, func() Reader { return newMachine(s) })
}

// Reader takes the lines of a case above its divider.
type Reader interface {
	Read(line string) error
	// Output is what the lines since the last call caused, as it is written below the divider.
	Output() string
}

// RunFrozen runs the script of the logic version of the topic that the fold derives, frozen_v1.txt in the folder. The flag
// -update does not change it: a fold that is to derive other records gets another version in processors.LogicVersion, and
// with it another script.
func RunFrozen(t *testing.T, folder Folder, derived string, s Script) {
	t.Helper()
	runCases(t, folder, fmt.Sprintf("frozen_v%d.txt", processors.LogicVersion(derived)),
		func() Reader { return newMachine(s) }, false)
}

// RunCases runs the cases of one script, each but those that continue the one before with a fresh reader.
func RunCases(t *testing.T, folder Folder, name string, fresh func() Reader) {
	t.Helper()
	runCases(t, folder, name, fresh, *update)
}

func runCases(t *testing.T, folder Folder, name string, fresh func() Reader, update bool) {
	t.Helper()
	content, err := folder.ReadFile(name)
	if err != nil {
		t.Fatalf("reading the script: %v", err)
	}
	var (
		m       Reader
		rewrite strings.Builder
	)
	for i, c := range parse(string(content)) {
		if i > 0 {
			rewrite.WriteString("\n")
		}
		rewrite.WriteString(c.source)
		if len(c.inputs) == 0 {
			continue
		}
		t.Run(c.name(), func(t *testing.T) {
			inputs := c.inputs
			if inputs[0].text == "continue" {
				if m == nil {
					t.Fatalf("%s:%d: nothing to continue", name, inputs[0].number)
				}
				inputs = inputs[1:]
			} else {
				m = fresh()
			}
			for _, in := range inputs {
				if err := m.Read(in.text); err != nil {
					t.Fatalf("%s:%d: %s: %v", name, in.number, in.text, err)
				}
			}
			got := m.Output()
			fmt.Fprintf(&rewrite, "%s\n%s", divider, got)
			if got != c.want && !update {
				t.Errorf("%s:%d:\n%sgot:\n%swant:\n%s", name, c.inputs[0].number, c.source, got, c.want)
			}
		})
	}
	if update && !t.Failed() {
		if err := folder.WriteFile(name, []byte(rewrite.String()), 0o644); err != nil {
			t.Fatalf("writing the script: %v", err)
		}
	}
}

type line struct {
	number int
	text   string
}

// scriptCase is one case: source is all above the divider, as written.
type scriptCase struct {
	source string
	inputs []line
	want   string
}

// name is the first line of the comment, else the first input.
func (c scriptCase) name() string {
	first, _, _ := strings.Cut(c.source, "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "#"))
}

func parse(content string) []scriptCase {
	var cases []scriptCase
	var c scriptCase
	below := false
	flush := func() {
		if c.source != "" {
			cases = append(cases, c)
		}
		c, below = scriptCase{}, false
	}
	for i, text := range strings.Split(content, "\n") {
		switch {
		case strings.TrimSpace(text) == "":
			flush()
		case text == divider:
			below = true
		case below:
			c.want += text + "\n"
		default:
			c.source += text + "\n"
			if !strings.HasPrefix(text, "#") {
				c.inputs = append(c.inputs, line{i + 1, text})
			}
		}
	}
	flush()
	return cases
}
