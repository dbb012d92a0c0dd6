package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/query/limits"
)

func keysCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Create, list, rotate and revoke API keys"}
	var input operations.KeyInput
	add := func(use, short, name string, args cobra.PositionalArgs) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				input.ID = args[0]
			}
			return keysCall(rt, cmd, name, input)
		}}
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
		cmd.AddCommand(c)
		return c
	}
	create := add("create", "Issue a key; it is printed once", "keys.create", cobra.NoArgs)
	create.Flags().StringVar(&input.Plan, "plan", limits.PlanFree, "free, starter, growth, pro or enterprise")
	create.Flags().StringVar(&input.Label, "label", "", "purpose of the key")
	add("list", "List the keys", "keys.list", cobra.NoArgs)
	rotate := add("rotate ID", "Issue a key that replaces another and shares its budget", "keys.rotate", cobra.ExactArgs(1))
	rotate.Flags().DurationVar(&input.Overlap, "overlap", 24*time.Hour, "how long the old key stays valid")
	add("sign", "Sign the keys that a version before signatures wrote; without a signature they are not valid", "keys.sign", cobra.NoArgs)
	add("revoke ID", "End a key now", "keys.revoke", cobra.ExactArgs(1))
	return cmd
}

func keysCall(rt *command.Runtime, cmd *cobra.Command, name string, input operations.KeyInput) error {
	type line struct {
		operations.KeyLine
		Signed *int `json:"signed"`
	}
	_, err := command.Lines(rt, cmd, name, input, func(out *command.Output, line line) error {
		switch {
		case line.Signed != nil:
			out.Text("signed %d keys", *line.Signed)
		case line.Key != "":
			out.Text("%s\nid %s, plan %s; it is not shown again", line.Key, line.ID, line.Plan)
		case line.ID == "":
			out.Text("revoked %s", input.ID)
		default:
			expires := ""
			if line.Expires != nil {
				expires = "until " + line.Expires.Format(time.RFC3339)
			}
			out.Row(line.ID, line.Plan, "…"+line.Last4, line.Created.Format(time.RFC3339), expires, line.Label)
		}
		return nil
	})
	return err
}
