// Marketlog keeps crypto prices as an append-only log and serves views of it that can be rebuilt, byte for byte.
//
// A command (deploy/cli) reads its configuration (deploy/config), runs the roles that it names (deploy/roles) and waits for the
// signal to drain.
package main

import (
	"os"

	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

func main() {
	sqlport.RunIfChild()
	app := command.Runtime{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	os.Exit(cli.Execute(cli.Interruptible(), &app, os.Args[1:]))
}
