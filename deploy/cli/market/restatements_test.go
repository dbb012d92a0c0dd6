package market

import "testing"

func TestTheHashOfAFileIsShortInATable(t *testing.T) {
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for cause, want := range map[string]string{
		"import " + hash:        "import 9f86d081884c…",
		"import 9f86":           "import 9f86",
		"source kraken":         "source kraken",
		"replay":                "replay",
		"correction 01J9ZW7M3K": "correction 01J9ZW7M3K",
	} {
		if got := shortCause(cause); got != want {
			t.Errorf("%q: got %q, want %q", cause, got, want)
		}
	}
}
