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
	"github.com/marketlog/marketlog/deploy/export"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
)

func exportCommand(rt *command.Runtime) *cobra.Command {
	var request export.Request
	var from, to string
	var attach, cancel bool
	cmd := &cobra.Command{
		Use:   "export --dataset NAME --from TIME --dir DIR",
		Short: "Write a dataset into files, one a UTC day, with a manifest",
		Long: `Write a dataset into files: one a UTC day, and of ticks and venues' candles one a day and venue. manifest.json beside them
names the rows, SHA-256 and columns of each, the position of the log it was read at, and the licence and attribution of every
source in it. Values whose terms forbid to pass them on are left out unless --own-use is given.

The datasets:
` + datasetsText() + `
The export runs inside the instance: interrupting this command leaves it running. After a crash, the same command resumes
it: finished files are checked and not written again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			action := admin.Start
			switch {
			case attach:
				action = admin.Attach
			case cancel:
				action = admin.Cancel
			default:
				if err := completeExport(&request, from, to); err != nil {
					return err
				}
			}
			return runResumable(rt, cmd, admin.Command{Name: "export", Long: true}, action, request,
				func(shown replayPrinter) jobPrinter { return &exportPrinter{shown} })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Dataset, "dataset", "", "`NAME` of the dataset")
	flags.StringVar(&from, "from", "", "start of the range, inclusive, as a `TIME` (RFC 3339)")
	flags.StringVar(&to, "to", "", "end of the range, exclusive, as a `TIME` (RFC 3339); default: the last midnight (UTC) up to which the tables are complete")
	flags.StringVar(&request.Format, "format", "parquet", strings.Join(export.FormatNames(), ", ")+" (trades and quotes only)")
	flags.StringVar(&request.Dir, "dir", "", "`DIR` of the files, on the machine of the instance")
	flags.BoolVar(&request.OwnUse, "own-use", false, "export values whose terms forbid to pass them on, too")
	flags.BoolVar(&attach, "attach", false, "show the progress of the running export")
	flags.BoolVar(&cancel, "cancel", false, "cancel the running export")
	cmd.MarkFlagsMutuallyExclusive("attach", "cancel")
	config.AddInstanceFlags(flags)
	command.AddDocumentsFlag(flags)
	return cmd
}

func datasetsText() string {
	var text strings.Builder
	for _, d := range export.Datasets {
		fmt.Fprintf(&text, "  %-17s %s\n", d.Name, d.Holds)
	}
	return text.String()
}

// completeExport reads what flags give as texts. The instance has another working directory, so it gets an absolute one.
func completeExport(request *export.Request, from, to string) (err error) {
	if request.From, err = operations.ParseTime("from", from); err != nil {
		return err
	}
	if request.To, err = operations.ParseTime("to", to); err != nil {
		return err
	}
	if request.Dataset == "" {
		return errors.New("--dataset is missing: one of " + strings.Join(schemas.Datasets(), ", "))
	}
	if request.Dir == "" {
		return errors.New("--dir is missing: name the directory of the files")
	}
	if request.Dir, err = filepath.Abs(request.Dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	return request.Validate()
}

// exportPrinter shows the lines of an export, with progress as of a replay.
type exportPrinter struct{ replayPrinter }

func (p *exportPrinter) line(raw json.RawMessage) error {
	var line struct {
		processors.ReplayProgress
		Exported string `json:"exported"` // of a result
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the export: %w", err)
	}
	if line.Step != "" {
		return p.progress(raw, line.ReplayProgress)
	}
	p.end()
	if p.out.Objects() {
		return p.out.Object(raw)
	}
	if line.Exported == "" {
		var file export.FileLine
		if err := json.Unmarshal(raw, &file); err != nil {
			return fmt.Errorf("reading a file of the export: %w", err)
		}
		kept := ""
		if file.Kept {
			kept = ", was there"
		}
		_, err := fmt.Fprintf(p.Stdout, "%s: %d rows, %d bytes%s\n", file.File, file.Rows, file.Bytes, kept)
		return err
	}
	var result export.Result
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result of the export: %w", err)
	}
	text := fmt.Sprintf("%s from %s to %s: %d files (%d were there), %d rows, %d bytes, %.1f s", result.Exported,
		result.From.Format(time.RFC3339), result.To.Format(time.RFC3339), result.Files, result.Kept, result.Rows, result.Bytes, result.Seconds)
	if len(result.LeftOut) > 0 {
		text += "; left out, since their terms forbid to pass values on: " + strings.Join(result.LeftOut, ", ")
	}
	_, err := fmt.Fprintln(p.Stdout, text)
	return err
}
