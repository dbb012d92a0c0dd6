package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/roles"
)

// newLogger writes to w: coloured text for people, JSON for machines. The level is one of the checked configuration.
func newLogger(cfg config.LogConfig, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level))
	terminal := roles.IsTerminal(w)
	if cfg.Format == "text" || cfg.Format == "auto" && terminal {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
