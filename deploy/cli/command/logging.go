package command

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lmittmann/tint"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/roles"
)

// NewLogger writes to w: coloured text for people, JSON for machines. The level is one of the checked configuration.
func NewLogger(cfg config.LogConfig, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level))
	terminal := roles.IsTerminal(w)
	if cfg.Format == "text" || cfg.Format == "auto" && terminal {
		return slog.New(plainMessages{tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal})})
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: durationText}))
}

// durationText writes a duration with its unit, as in "1.5s": the JSON handler would write a bare number of nanoseconds.
func durationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// plainMessages quotes messages that are not printable: the text handler quotes attributes only, and the broker's messages
// hold what clients sent.
type plainMessages struct{ slog.Handler }

// Handle implements slog.Handler.
func (h plainMessages) Handle(ctx context.Context, r slog.Record) error {
	if strings.ContainsFunc(r.Message, func(c rune) bool { return !unicode.IsPrint(c) }) || !utf8.ValidString(r.Message) {
		r.Message = strconv.Quote(r.Message)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h plainMessages) WithAttrs(attrs []slog.Attr) slog.Handler {
	return plainMessages{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h plainMessages) WithGroup(name string) slog.Handler {
	return plainMessages{h.Handler.WithGroup(name)}
}
