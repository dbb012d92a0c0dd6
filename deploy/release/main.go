// Command release writes what lies beside the binary in the archive of a release: completions for bash, zsh and fish, and a manual page for
// each command.
//
//	go run ./deploy/release FOLDER
//
// FOLDER/completions and FOLDER/man are made; what is in them already is overwritten. With SOURCE_DATE_EPOCH (Unix seconds) the pages have that
// date, so that the same commit gives the same bytes.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/cli/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "release: name a folder, and nothing else")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	root := &cobra.Command{Use: "marketlog", Short: cli.Short, DisableAutoGenTag: true}
	root.AddCommand(cli.Commands(&command.Runtime{})...)
	completions, man := filepath.Join(folder, "completions"), filepath.Join(folder, "man")
	if err := errors.Join(os.MkdirAll(completions, 0o755), os.MkdirAll(man, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "marketlog.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_marketlog")),
		root.GenFishCompletionFile(filepath.Join(completions, "marketlog.fish"), true),
		doc.GenManTree(root, &doc.GenManHeader{Title: "MARKETLOG", Section: "1", Source: "Marketlog", Manual: "Marketlog"}, man),
	)
}
