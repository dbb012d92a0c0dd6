package deploy

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the module's, or the commit it was built from.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := build.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, changed := "devel", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	return revision + changed
}

func (a *App) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inJSON, err := asJSON(cmd)
			if err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if inJSON {
				return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(a.Stdout, "marketlog %s (%s, %s)\n", version(), runtime.Version(), platform)
			return nil
		},
	}
	addOutputFlag(cmd.Flags())
	return cmd
}
