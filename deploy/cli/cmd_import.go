package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/processors"
)

func importCommand(rt *command.Runtime) *cobra.Command {
	var request imports.Request
	var list, attach, cancel bool
	cmd := &cobra.Command{
		Use:   "import FILE... --format NAME",
		Short: "Read files with candles of venues' markets into the log",
		Long: `Read files with candles of venues' markets into the log. Charts, a coin's history and v_candles_… show them where nothing was
published live, with origin import; v_imports lists the files.

The formats:
` + importFormatsText() + `
The import runs inside the instance, which reads the files from its machine: interrupting this command leaves it running. After
a crash, the same command resumes it. A file that was imported is not read again; one with the name of another that differs
replaces its candles. Lines that cannot be read go to the dead letters.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			action, v := admin.Start, admin.Command{Name: "import", Long: true}
			switch {
			case list:
				v = admin.Command{Name: "import.list"}
			case attach:
				action = admin.Attach
			case cancel:
				action = admin.Cancel
			default:
				if err := completeImport(&request, args); err != nil {
					return err
				}
				if request.DryRun {
					v = admin.Command{Name: "import.check"}
				}
			}
			if (list || attach || cancel) && len(args) > 0 {
				return errors.New("--list, --attach and --cancel take no files")
			}
			return runResumable(rt, cmd, v, action, request, func(shown replayPrinter) jobPrinter { return &importPrinter{shown} })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Format, "format", "", strings.Join(imports.FormatNames(), " or "))
	flags.StringVar(&request.Venue, "venue", "", "`NAME` of the venue, where the file does not say it; binance for binance-klines")
	flags.StringVar(&request.Market, "market", "", "`SYMBOL` of the market as spelled by the venue, where the file does not say it")
	flags.StringVar(&request.Base, "base", "", "base `ASSET` of the market as the venue names it, where its symbol does not show it")
	flags.StringVar(&request.Quote, "quote", "", "quote `ASSET` of the market, likewise")
	flags.StringVar(&request.Interval, "interval", "", "length of the candles, where the file does not say it: 1m, 1h or 1d")
	flags.BoolVar(&request.DryRun, "dry-run", false, "check the files and show what is in them; import nothing")
	flags.BoolVar(&request.Confirm, "confirm", false, "import files whose prices are more than 50 % off what is known")
	flags.BoolVar(&list, "list", false, "list what was imported")
	flags.BoolVar(&attach, "attach", false, "show the progress of the running import")
	flags.BoolVar(&cancel, "cancel", false, "cancel the running import")
	cmd.MarkFlagsMutuallyExclusive("list", "attach", "cancel", "dry-run")
	config.AddInstanceFlags(flags)
	command.AddDocumentsFlag(flags)
	return cmd
}

func importFormatsText() string {
	var text strings.Builder
	for _, f := range imports.Formats {
		fmt.Fprintf(&text, "  %-14s %s\n", f.Name, f.Holds)
	}
	return text.String()
}

// completeImport takes the files over. The instance has another working directory, so it gets absolute ones.
func completeImport(request *imports.Request, files []string) error {
	for _, name := range files {
		path, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		request.Files = append(request.Files, path)
	}
	return request.Validate()
}

// importPrinter shows the lines of an import, with progress as of a replay.
type importPrinter struct{ replayPrinter }

func (p *importPrinter) line(raw json.RawMessage) error {
	var line struct {
		processors.ReplayProgress
		File string `json:"file"`
		Name string `json:"name"` // of a listed file
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the import: %w", err)
	}
	if line.Step != "" {
		return p.progress(raw, line.ReplayProgress)
	}
	p.end()
	switch {
	case p.out.Objects():
		return p.out.Object(raw)
	case line.File != "":
		return printLine(p.replayPrinter, raw, importedText)
	case line.Name != "":
		return printLine(p.replayPrinter, raw, func(l imports.ListLine) string {
			text := fmt.Sprintf("%s  %s  %s %s %s: %s, imported %s", l.SHA256[:12], l.Name, l.Venue, l.Symbol, l.Interval, rowsText(int64(l.Rows), l.First, l.Last), l.Imported.Format(time.RFC3339))
			if l.BadRows > 0 {
				text += fmt.Sprintf(", %d bad lines in the file", l.BadRows)
			}
			if l.Replaces != "" {
				text += ", replaces " + l.Replaces[:12]
			}
			if !l.Whole {
				text += "; other markets of the file are missing: run the import again"
			}
			return text
		})
	}
	return printLine(p.replayPrinter, raw, func(r imports.Result) string {
		text := fmt.Sprintf("%d files: %d imported, %d known, %d refused", r.Files, r.Imported, r.Known, r.Refused)
		if r.Checked > 0 {
			text = fmt.Sprintf("%d files: %d can be imported, %d known, %d refused", r.Files, r.Checked, r.Known, r.Refused)
		}
		return text + fmt.Sprintf("; %d candles, %d of them written, %d bad lines, %.1f s", r.Rows, r.Written, r.BadRows, r.Seconds)
	})
}

func rowsText(rows int64, first, last time.Time) string {
	return fmt.Sprintf("%d candles from %s to %s", rows, first.Format(time.RFC3339), last.Format(time.RFC3339))
}

// importedText is what became of a file.
func importedText(l imports.FileLine) string {
	name := filepath.Base(l.File)
	switch l.State {
	case imports.StateRefused:
		return fmt.Sprintf("%s: refused: %s", name, l.Reason)
	case imports.StateKnown:
		as := ""
		if l.Name != name {
			as = " as " + l.Name
		}
		return fmt.Sprintf("%s: was imported %s%s, %d candles; nothing to do", name, l.Imported.Format(time.RFC3339), as, l.Rows)
	}
	var text []string
	for _, m := range l.Markets {
		line := fmt.Sprintf("%s: %s %s %s (%s in %s): %s", name, m.Venue, m.Symbol, m.Interval, m.Coin, m.Quote, rowsText(m.Rows, m.First, m.Last))
		if m.Compared == "" {
			line += "; nothing is known to compare its prices with"
		} else {
			line += "; " + m.Compared
		}
		text = append(text, line)
	}
	if more := l.MarketCount - len(l.Markets); more > 0 {
		text = append(text, fmt.Sprintf("%s: %d more markets", name, more))
	}
	for _, p := range l.Passed {
		text = append(text, fmt.Sprintf("%s: passed over %s %s: %s", name, p.Venue, p.Symbol, p.Reason))
	}
	if more := l.PassedCount - len(l.Passed); more > 0 {
		text = append(text, fmt.Sprintf("%s: passed over %d more markets", name, more))
	}
	if l.PassedCount > 0 {
		text = append(text, fmt.Sprintf("%s: %d lines are of %d markets that are passed over; given again once they are known, the file is imported whole", name, l.PassedLines, l.PassedCount))
	}
	if l.Replaces != "" {
		text = append(text, fmt.Sprintf("%s: replaces the candles of an earlier file of this name (SHA-256 %s), of which it has %d no longer", name, l.Replaces, l.Withdrawn))
	}
	if l.BadRows > 0 {
		text = append(text, fmt.Sprintf("%s: %d lines could not be read; v_dead_letters has them", name, l.BadRows))
	}
	if l.State == imports.StateImported {
		text = append(text, fmt.Sprintf("%s: %d of %d candles written", name, l.Written, l.Rows))
	}
	return strings.Join(text, "\n")
}
