// Marketlog keeps crypto prices as an append-only log and serves views of it that can be rebuilt, byte for byte.
//
// A command reads its configuration (deploy/config.go), runs the roles that it names (deploy/roles.go) and waits for
// the signal to drain.
package main

import (
	"os"

	"github.com/marketlog/marketlog/deploy"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

func main() {
	sqlport.RunIfChild()
	app := deploy.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	os.Exit(app.Execute(deploy.Interruptible(), os.Args[1:]))
}
