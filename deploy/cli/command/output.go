package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/marketlog/marketlog/deploy/admin"
)

// Formats of -o.
const (
	FormatText = "text"
	FormatJSON = "json"
	FormatYAML = "yaml"
	FormatCSV  = "csv"
)

// AddOutputFlag adds -o to a command that prints a list or one object.
func AddOutputFlag(flags *pflag.FlagSet) {
	addOutputFlag(flags, FormatText, FormatJSON, FormatYAML, FormatCSV)
}

// AddDocumentsFlag adds -o to a command whose lines fit no table: nested ones, or those of several kinds, such as progress and result.
func AddDocumentsFlag(flags *pflag.FlagSet) { addOutputFlag(flags, FormatText, FormatJSON, FormatYAML) }

func addOutputFlag(flags *pflag.FlagSet, formats ...string) {
	flags.StringP("output", "o", FormatText, list(formats))
	_ = flags.SetAnnotation("output", "formats", formats) // the flag is there
}

// list is the words with commas, and "or" before the last.
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Output prints the result of a command by -o: as text, whose cells are aligned in columns, or as objects.
type Output struct {
	// Format is one of the formats above; empty is text.
	Format string
	to     io.Writer
	table  *tabwriter.Writer
	csv    *csvTable
}

// Output reads -o. The caller calls Flush at the end.
func (rt *Runtime) Output(cmd *cobra.Command) (*Output, error) {
	out := &Output{Format: FormatText, to: rt.Stdout, table: tabwriter.NewWriter(rt.Stdout, 0, 0, 2, ' ', 0), csv: newCSVTable(rt.Stdout)}
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return out, nil
	}
	out.Format = flag.Value.String()
	if formats := flag.Annotations["formats"]; !slices.Contains(formats, out.Format) {
		return nil, fmt.Errorf("--output %q is unknown here; use %s", out.Format, list(formats))
	}
	return out, nil
}

// Objects is whether Object is called for each line; else Row and Text are.
func (o *Output) Objects() bool { return o.Format != FormatText && o.Format != "" }

// Object prints a value that encodes as a JSON object: as one line of JSON, one document of YAML, or one record of CSV. In CSV an object that
// has a list of objects, such as an answer of the REST interface, is printed as a record for each of these.
func (o *Output) Object(v any) error {
	switch o.Format {
	case FormatYAML:
		return writeYAML(o.to, v)
	case FormatCSV:
		return o.csv.write(v)
	default:
		return json.NewEncoder(o.to).Encode(v)
	}
}

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

// Print prints rows: as objects, else below a header, each by cells. With a nil header none is printed.
func Print[T any](out *Output, header []any, rows []T, cells func(T) []any) error {
	if !out.Objects() && header != nil {
		out.Row(header...)
	}
	for _, row := range rows {
		if !out.Objects() {
			out.Row(cells(row)...)
		} else if err := out.Object(row); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Lines runs a command of the instance and prints each line of its reply: as an object as it is, else by show. It returns
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
	out.csv.columnsOf(*new(T))
	err = rt.Call(cmd.Context(), cfg, admin.Command{Name: name}, admin.Start, input, func(raw json.RawMessage) error {
		lines++
		if out.Objects() {
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
