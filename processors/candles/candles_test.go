package candles_test

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
)

func TestCandles(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"prices.txt", "volume.txt", "closing.txt", "venues.txt"} {
		t.Run(file, func(t *testing.T) {
			origins := int32(1)
			if file == "closing.txt" {
				origins = 2
			}
			foldtest.Run(t, root, file, foldtest.Script{
				New:   func() processors.Fold { return candles.New(origins) },
				Topic: schemas.TopicTicks,
			})
		})
	}
}

// What this version of the fold derives stays as it is.
func TestFrozenCandles(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.RunFrozen(t, root, schemas.TopicCandles, foldtest.Script{New: func() processors.Fold { return candles.New(1) },
		Topic: schemas.TopicTicks})
}
