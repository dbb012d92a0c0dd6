package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/marketlog/marketlog/deploy/admin"
)

// AddOutputFlag adds -o.
func AddOutputFlag(flags *pflag.FlagSet) {
	flags.StringP("output", "o", "text", "text or json")
}

// Output prints the result of a command: with -o json each line as an object, else as text, whose cells are aligned in columns.
type Output struct {
	// JSON is whether the lines are objects: then Row and Text must not be called.
	JSON  bool
	to    io.Writer
	table *tabwriter.Writer
}

// Output reads -o. The caller calls Flush at the end.
func (rt *Runtime) Output(cmd *cobra.Command) (*Output, error) {
	format, _ := cmd.Flags().GetString("output")
	if format != "json" && format != "text" {
		return nil, fmt.Errorf("--output %q is unknown; use text or json", format)
	}
	return &Output{JSON: format == "json", to: rt.Stdout, table: tabwriter.NewWriter(rt.Stdout, 0, 0, 2, ' ', 0)}, nil
}

// Object prints a value as one line of JSON.
func (o *Output) Object(v any) error { return json.NewEncoder(o.to).Encode(v) }

// Row prints a line of cells. Neighbouring rows are aligned.
func (o *Output) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	fmt.Fprintln(o.table, strings.Join(texts, "\t"))
}

// Text prints a line without columns.
func (o *Output) Text(format string, args ...any) { fmt.Fprintf(o.table, format+"\n", args...) }

// Flush writes what is held back for the alignment, and returns the first error of writing text.
func (o *Output) Flush() error { return o.table.Flush() }

// Print prints rows: as objects with -o json, else below a header, each by cells. A nil header is none.
func Print[T any](out *Output, header []any, rows []T, cells func(T) []any) error {
	if !out.JSON && header != nil {
		out.Row(header...)
	}
	for _, row := range rows {
		if !out.JSON {
			out.Row(cells(row)...)
		} else if err := out.Object(row); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Lines runs a command of the instance and prints each line of its reply: as it is with -o json, else by show. It returns
// the number of lines.
func Lines[T any](rt *Runtime, cmd *cobra.Command, name string, input any, show func(out *Output, line T) error) (lines int, err error) {
	out, err := rt.Output(cmd)
	if err != nil {
		return 0, err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return 0, err
	}
	err = rt.Call(cmd.Context(), cfg, admin.Command{Name: name}, admin.Start, input, func(raw json.RawMessage) error {
		lines++
		if out.JSON {
			return out.Object(raw)
		}
		var line T
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading a line of %s: %w", name, err)
		}
		return show(out, line)
	})
	return lines, errors.Join(err, out.Flush())
}
