// Command interface converts the specification of the HTTP interface, a Markdown page, into the data file that the walk
// over the specification reads: operations with their parameters and the shapes of their answers, resources with the types of
// their fields, and tools with the operations they call. It keeps names, methods, paths, types and values; prose is
// left out.
//
//	go -C tools run ./interface SPECIFICATION.md >deploy/e2e/testdata/interface.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go -C tools run ./interface SPECIFICATION.md")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "interface:", err)
		os.Exit(1)
	}
	found, err := convert(string(text))
	if err != nil {
		fmt.Fprintln(os.Stderr, "interface:", err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, "interface:", err)
		os.Exit(1)
	}
}
