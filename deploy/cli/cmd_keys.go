package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/query/limits"
)

func (a *App) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Issue, list and end API keys"}
	var input operations.KeyInput
	add := func(use, short, verb string, args cobra.PositionalArgs) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				input.ID = args[0]
			}
			return a.keysCall(cmd, verb, input)
		}}
		config.AddInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
		return c
	}
	create := add("create", "Issue a key; it is printed once", "keys.create", cobra.NoArgs)
	create.Flags().StringVar(&input.Plan, "plan", limits.PlanFree, "free, starter, growth, pro or enterprise")
	create.Flags().StringVar(&input.Label, "label", "", "what the key is for")
	add("list", "List the keys", "keys.list", cobra.NoArgs)
	rotate := add("rotate ID", "Issue a key that replaces another and shares its budget", "keys.rotate", cobra.ExactArgs(1))
	rotate.Flags().DurationVar(&input.Overlap, "overlap", 24*time.Hour, "how long the old key stays valid")
	add("sign", "Sign the keys that a version before signatures wrote; without a signature they are not valid", "keys.sign", cobra.NoArgs)
	add("revoke ID", "End a key now", "keys.revoke", cobra.ExactArgs(1))
	return cmd
}

func (a *App) keysCall(cmd *cobra.Command, verb string, input operations.KeyInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	err = a.call(cmd.Context(), cfg, admin.Command{Name: verb}, admin.Start, input, func(raw json.RawMessage) error {
		if inJSON {
			_, err := fmt.Fprintf(a.Stdout, "%s\n", raw)
			return err
		}
		var line struct {
			operations.KeyLine
			Signed *int `json:"signed"`
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		switch {
		case line.Signed != nil:
			fmt.Fprintf(table, "signed %d keys\n", *line.Signed)
		case line.Key != "":
			fmt.Fprintf(table, "%s\nid %s, plan %s; it is not shown again\n", line.Key, line.ID, line.Plan)
		case line.ID == "":
			fmt.Fprintf(table, "revoked %s\n", input.ID)
		default:
			expires := ""
			if line.Expires != nil {
				expires = "until " + line.Expires.Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t…%s\t%s\t%s\t%s\n", line.ID, line.Plan, line.Last4, line.Created.Format(time.RFC3339), expires, line.Label)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return table.Flush()
}
