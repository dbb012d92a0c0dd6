package mcp_test

import (
	"testing"

	"github.com/marketlog/marketlog/query/querytest"
)

func TestFramesReadAsTheirScripts(t *testing.T) {
	w := newFixture(t)
	querytest.Run(t, func(t *testing.T) func(string) string { return w.in(t).Run })
}
