package schemas

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the documents state of how much the tables hold is true.
func TestDocumentsCountTheTablesRight(t *testing.T) {
	for document, want := range map[string]string{
		"CHANGELOG.md": fmt.Sprintf("DefiLlama's %d projects", len(embeddedRateProjects())),
		"symbols.md":   fmt.Sprintf("a coin of our table (%d, by rank)", len(Coins().All())),
	} {
		text, err := os.ReadFile(filepath.Join("..", "docs", document))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/%s does not say %q", document, want)
		}
	}
}
