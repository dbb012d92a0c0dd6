package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/marketlog/marketlog/schemas"
)

// LakeConfig says where each finished UTC day is exported to.
type LakeConfig struct {
	// Dir is the directory, of one installation alone; empty: nothing is exported.
	Dir string `koanf:"dir"`
	// Datasets and Format are names of the export command.
	Datasets []string `koanf:"datasets"`
	Format   string   `koanf:"format"`
	// Days is how many finished days are looked at: those among them that were missed are exported later.
	Days int `koanf:"days"`
	// KeepDays is how many finished days stay in the directory; 0: all.
	KeepDays int `koanf:"keep_days"`
	// OwnUse exports values too whose terms forbid to pass them on.
	OwnUse bool `koanf:"own_use"`
}

// maxLakeDays bounds the days of a lake: ten years.
const maxLakeDays = 3660

func (c LakeConfig) validate(f *Faults) {
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		f.add("lake.dir", c.Dir, "is not an absolute path", "name the directory from / on")
	}
	if c.Dir != "" && len(c.Datasets) == 0 {
		f.add("lake.datasets", "", "is empty", "name some of "+strings.Join(schemas.Datasets(), ", "))
	}
	for _, name := range c.Datasets {
		if !slices.Contains(schemas.Datasets(), name) {
			f.add("lake.datasets", name, "is not a dataset", "name some of "+strings.Join(schemas.Datasets(), ", "))
		}
	}
	f.oneOf("lake.format", c.Format, "parquet", "arrow", "csv")
	if c.Days < 1 || c.Days > maxLakeDays {
		f.add("lake.days", strconv.Itoa(c.Days), "is outside 1 to "+strconv.Itoa(maxLakeDays), "use 30")
	}
	if c.KeepDays != 0 && (c.KeepDays < c.Days || c.KeepDays > maxLakeDays) {
		f.add("lake.keep_days", strconv.Itoa(c.KeepDays), "is outside lake.days ("+strconv.Itoa(c.Days)+") to "+strconv.Itoa(maxLakeDays), "use 0 to keep all days")
	}
}
