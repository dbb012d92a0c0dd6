// Command proofs keeps what long tests showed, one file a proof in docs/proofs, and shows how old each is.
//
//	go -C tools run ./proofs                      lists all proofs: result, counts, age, and what has changed since
//	go -C tools run ./proofs record NAME ARG…     runs `go test -json ARG…` and writes docs/proofs/NAME.json
//
// A test reports its numbers by t.Attr("proof.NAME", NUMBER), which are added up over all tests of the run, and its seeds by
// t.Attr("proof.seed", NUMBER). A run that failed is written down too. record exits as `go test` did.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	// The program lies in the module of the tools; all it looks at is in the one above.
	if err := os.Chdir(".."); err != nil {
		fail(err)
	}
	if _, err := os.Stat(filepath.Join("tools", "proofs")); err != nil {
		fail(fmt.Errorf("run it by `make proofs` or `go -C tools run ./proofs`"))
	}
	switch args := os.Args[1:]; {
	case len(args) == 0:
		if err := list(os.Stdout, time.Now()); err != nil {
			fail(err)
		}
	case args[0] == "record" && len(args) > 2:
		code, err := record(args[1], args[2:])
		if err != nil {
			fail(err)
		}
		os.Exit(code)
	default:
		fail(fmt.Errorf("usage: proofs [record NAME ARG…], with the arguments of go test"))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "proofs:", err)
	os.Exit(1)
}
