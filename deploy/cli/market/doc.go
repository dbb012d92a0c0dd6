// Package market is the commands that show prices, yields and the state of a server to people. They are clients of the REST interface: of the running
// instance, with a key that they make and keep in its data directory, or of the server that MARKETLOG_URL names.
package market

import (
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
)

// Commands are the commands of this package.
func Commands(rt *command.Runtime) []*cobra.Command {
	return []*cobra.Command{
		priceCommand(rt), watchCommand(rt), chartCommand(rt), explainCommand(rt), ratesCommand(rt), restatementsCommand(rt), envCommand(rt), statusCommand(rt),
	}
}
