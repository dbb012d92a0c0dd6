package roles

import (
	"io"
	"os"
)

// IsTerminal reports whether what is written to w is read by a person at once.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}
