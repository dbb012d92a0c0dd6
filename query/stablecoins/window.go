package stablecoins

import (
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
)

const (
	day = 24 * time.Hour
	// maxDays is the longest window.
	maxDays       = 1825
	defaultWindow = "30d"
)

// window is how far a history looks back, and the step of its points.
type window struct {
	span, step  time.Duration
	granularity string
	clamped     bool
}

var namedWindows = map[string]time.Duration{"1y": 365 * day, "max": maxDays * day}

var windowParam = query.Param{Name: "window", Kind: query.Text, Default: defaultWindow, ToolDefault: "48h", MaxLength: 16, Check: isWindow, Pattern: "^(1[yY]|[mM][aA][xX]|[0-9]+[hHdD])$", Example: "7d",
	Doc: "Period: 24h, 7d, 30d, 90d, 1y, max, or hours or days such as 36h or 14d, at most 1825d. Longer ones are lowered to that. Points are 5 minutes apart up to 24h, one hour up to 30d, one day beyond."}

func isWindow(text string) string {
	if _, ok := readWindow(text); !ok {
		return "must be 24h, 7d, 30d, 90d, 1y, max, or a number of hours or days such as 36h or 14d"
	}
	return ""
}

func readWindow(text string) (w window, ok bool) {
	text = strings.ToLower(text)
	w.span, ok = namedWindows[text]
	if !ok {
		unit := time.Hour
		digits, hours := strings.CutSuffix(text, "h")
		if !hours {
			digits, ok = strings.CutSuffix(text, "d")
			unit = day
			if !ok {
				return w, false
			}
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n == 0 || digits[0] == '+' {
			return w, false
		}
		if limit := uint64(maxDays * day / unit); n > limit {
			n, w.clamped = limit, true
		}
		w.span = time.Duration(n) * unit
	}
	switch {
	case w.span <= day:
		w.step, w.granularity = 5*time.Minute, "5m"
	case w.span <= 30*day:
		w.step, w.granularity = time.Hour, "1h"
	default:
		w.step, w.granularity = day, "1d"
	}
	return w, true
}
