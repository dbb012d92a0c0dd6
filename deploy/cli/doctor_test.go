package cli

import (
	"slices"
	"strings"
	"testing"
)

// The doctor names what /readyz names, whichever address answers.
func TestTheDoctorNamesWhatIsMissing(t *testing.T) {
	for body, want := range map[string][]string{
		`{"roles":[],"missing":{"tables":["rows are gone"],"disk":["full","slow"]}}`:               {"disk: full, slow", "tables: rows are gone"},
		`{"error":{"code":"STARTING","message":"not ready","errors":{"prices":["no price yet"]}}}`: {"prices: no price yet"},
		`<html>`: nil,
	} {
		if got := missingParts(strings.NewReader(body)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
