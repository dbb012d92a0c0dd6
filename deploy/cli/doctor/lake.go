package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/export"
)

// examineLake asks a running instance how the days fare that it exports by itself.
func examineLake(ctx context.Context, cfg config.Config, info admin.RunInfo) []Finding {
	if cfg.Lake.Dir == "" || len(info.Kafka) == 0 {
		return nil
	}
	var all []export.LakeStatus
	err := admin.CallRunning(ctx, info.Admin, admin.Command{Name: "lake"}, admin.Start, struct{}{}, func(raw json.RawMessage) error {
		var line export.LakeStatus
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("reading how the lake fares: %w", err)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		return []Finding{{"lake", "failed", err.Error(), ""}}
	}
	return judgeLake(cfg.Lake.Dir, all)
}

// judgeLake names the datasets that fail, and how far the others are.
func judgeLake(dir string, all []export.LakeStatus) (found []Finding) {
	var texts []string
	for _, s := range all {
		if s.Failing != "" {
			found = append(found, Finding{
				"lake", "failed", fmt.Sprintf("%s fails since %s: %s", s.Dataset, s.Since.Format(time.RFC3339), s.Failing),
				"it is tried again by itself, at least every hour and a half; ingest goes on meanwhile",
			})
			continue
		}
		text := s.Dataset + " has no day yet"
		if !s.Newest.IsZero() {
			text = s.Dataset + " up to " + s.Newest.Format(time.DateOnly)
		}
		if s.Due > 0 {
			text += fmt.Sprintf(" (%d more to export)", s.Due)
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		found = append(found, Finding{"lake", "ok", strings.Join(texts, ", ") + " in " + dir, ""})
	}
	return found
}
