package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/schemas/tables"
)

const (
	prompt = "marketlog> "
	// within is the prompt within a statement.
	within = "        -> "
)

// openShell reads statements from the terminal until its user leaves.
func openShell(rt *command.Runtime, cmd *cobra.Command) error {
	in, ok := rt.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("standard input is not a terminal: give a statement, or - to read it from there")
	}
	s, err := connect(rt, cmd)
	if err != nil {
		return err
	}
	defer s.done()
	var words atomic.Pointer[[]string]
	words.Store(&[]string{})
	asking, stop := context.WithCancel(cmd.Context())
	defer stop()
	go func() { // the first statement of an instance starts a process, which takes seconds
		if names, err := s.names(asking); err == nil { // without them Tab completes nothing
			words.Store(&names)
		}
	}()
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	keys := newKeys(in)
	sh := &shell{session: s, keys: keys, terminal: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, rt.Stdout}, prompt)}
	if width, height, err := term.GetSize(int(in.Fd())); err == nil && width > 0 {
		_ = sh.terminal.SetSize(width, height) // else it stays 80 columns wide
	}
	sh.terminal.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		line, pos = complete(*words.Load(), line, pos)
		return line, pos, true
	}
	return sh.run(cmd.Context())
}

// shell is a conversation in a terminal.
type shell struct {
	session
	keys     *keys
	terminal *term.Terminal
}

// run reads and runs statements until the input ends, \q, or the context ends.
func (sh *shell) run(ctx context.Context) error {
	var statement strings.Builder
	for ctx.Err() == nil {
		line, err := sh.terminal.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return fmt.Errorf("reading the terminal: %w", err)
		}
		if statement.Len() == 0 && strings.HasPrefix(strings.TrimSpace(line), "\\") {
			if line = strings.TrimSpace(line); line == `\q` {
				return nil
			}
			sh.command(ctx, line)
			continue
		}
		statement.WriteString(line + "\n")
		switch text := strings.TrimSpace(statement.String()); {
		case text == "":
			statement.Reset()
		case statement.Len() > maxStatement:
			fmt.Fprintf(sh.terminal, "a statement has at most %d bytes; this one is forgotten\n", maxStatement)
			statement.Reset()
		case strings.HasSuffix(text, ";"):
			sh.execute(ctx, strings.TrimSuffix(text, ";"))
			statement.Reset()
		}
		sh.terminal.SetPrompt(prompt)
		if statement.Len() > 0 {
			sh.terminal.SetPrompt(within)
		}
	}
	return nil
}

// command executes a line that begins with a backslash.
func (sh *shell) command(ctx context.Context, line string) {
	switch name, view, _ := strings.Cut(line, " "); {
	case name == `\d` && view == "":
		sh.execute(ctx, `SELECT name, comment FROM system.tables WHERE database = 'default' AND name LIKE 'v\_%' ORDER BY name`)
	case name == `\d` && withParameters(strings.TrimSpace(view)) != nil:
		sh.execute(ctx, `SELECT c[1] AS name, c[2] AS type, c[3] AS comment FROM (SELECT splitByChar('\x1f', arrayJoin(splitByChar('\x1e', {columns:String}))) AS c)`,
			"columns", asParameter(withParameters(strings.TrimSpace(view))))
	case name == `\d`:
		sh.execute(ctx, `SELECT name, type, comment FROM system.columns WHERE database = 'default' AND table = {view:String} ORDER BY position`, "view", strings.TrimSpace(view))
	default:
		fmt.Fprintln(sh.terminal, `\d lists the views, \d VIEW its columns, \q leaves; statements end with a semicolon`)
	}
}

// execute runs a statement, which Ctrl-C ends.
func (sh *shell) execute(ctx context.Context, statement string, params ...string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer sh.keys.onInterrupt(cancel)()
	began := time.Now()
	err := sh.session.run(ctx, sh.terminal, statement, params...)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(sh.terminal, "interrupted")
	case err != nil:
		fmt.Fprintln(sh.terminal, err)
	default:
		fmt.Fprintf(sh.terminal, "%.3f s\n\n", time.Since(began).Seconds())
	}
}

// names are those of views and their columns, in order.
func (s session) names(ctx context.Context) ([]string, error) {
	var text strings.Builder
	s.format = "TSVRaw"
	err := s.run(ctx, &text, `SELECT DISTINCT arrayJoin([name, table]) AS word FROM system.columns WHERE database = 'default' AND table LIKE 'v\_%' ORDER BY word`)
	words := strings.Fields(text.String())
	for _, v := range declared() {
		if v.Parameters {
			words = append(words, v.Name)
			for _, c := range v.Columns {
				words = append(words, c.Name)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words), err
}

// declared are the views as this program makes them.
var declared = sync.OnceValue(func() []tables.View {
	list, _ := tables.Declared() // they are a part of the program, and a test reads them
	return list
})

// withParameters are the columns of a view that takes parameters, of which the engine lists none; nil for every other.
func withParameters(view string) []tables.Column {
	for _, v := range declared() {
		if v.Name == view && v.Parameters {
			return v.Columns
		}
	}
	return nil
}

// asParameter writes columns as the value of one parameter: with the separators of ASCII, which need no escape, and no text has them.
func asParameter(columns []tables.Column) string {
	var rows []string
	for _, c := range columns {
		rows = append(rows, strings.Join([]string{c.Name, c.Type, c.Comment}, "\x1f"))
	}
	return strings.ReplaceAll(strings.Join(rows, "\x1e"), `\`, `\\`)
}
