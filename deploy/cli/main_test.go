package cli

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

// The process of analysts' SQL is this program, started again.
func TestMain(m *testing.M) {
	sqlport.RunIfChild()
	os.Exit(m.Run())
}
