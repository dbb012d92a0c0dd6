// Marketlog keeps crypto prices as an append-only log and serves views of it that can be rebuilt, byte for byte.
//
// A command (deploy/cli) reads its configuration (deploy/config), runs the roles that it names (deploy/roles) and waits for the
// signal to drain.
package main

import (
	"os"

	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

func main() {
	sqlport.RunIfChild()
	app := cli.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	os.Exit(app.Execute(cli.Interruptible(), os.Args[1:]))
}
