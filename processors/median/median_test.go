package median_test

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/schemas"
)

func TestMedian(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"publishing.txt", "freshness.txt", "votes.txt", "outliers.txt", "values.txt", "silence.txt", "excluded.txt", "origins.txt"} {
		t.Run(file, func(t *testing.T) {
			origins := int32(1)
			if file == "origins.txt" {
				origins = 2
			}
			foldtest.Run(t, root, file, foldtest.Script{
				New:   func() processors.Fold { return median.New(schemas.Coins(), origins) },
				Topic: schemas.TopicTicks, Pulses: file == "origins.txt",
			})
		})
	}
}

// What this version of the fold derives stays as it is.
func TestFrozenPrices(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.RunFrozen(t, root, schemas.TopicPrices,
		foldtest.Script{New: func() processors.Fold { return median.New(schemas.Coins(), 1) }, Topic: schemas.TopicTicks})
}
