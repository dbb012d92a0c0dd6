package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/sources"
)

// SourceInput is what the verbs of sources take; an empty name means all.
type SourceInput struct {
	Name string `json:"name,omitempty"`
	On   bool   `json:"on,omitempty"`
}

// SourceLine is a source as the command shows it. The key itself is never shown.
type SourceLine struct {
	Source    string `json:"source"`
	Name      string `json:"name"`
	Enabled   bool   `json:"enabled"`
	Simulated bool   `json:"simulated"`
	// Why reports who decided whether it is asked; empty: the declaration.
	Why string `json:"why,omitempty"`
	// Key is configured, not configured, or not taken.
	Key      string   `json:"key"`
	Kinds    []string `json:"kinds"`
	Interval string   `json:"interval"`
	// Requests may be made within Per.
	Requests    int    `json:"requests"`
	Per         string `json:"per"`
	URL         string `json:"url"`
	License     string `json:"license"`
	Terms       string `json:"terms"`
	Attribution string `json:"attribution,omitempty"`
}

func sourceLineOf(in *instance.Instance, s instance.SourceState) SourceLine {
	key := "not taken"
	if s.KeyHeader != "" {
		key = "not configured"
		if in.Config.Sources[s.Slug].KeyFile != "" {
			key = "configured"
		}
	}
	return SourceLine{
		Source: s.Slug, Name: s.Name, Enabled: s.Enabled, Simulated: s.Simulated, Why: s.Why, Key: key, Kinds: s.Kinds,
		Interval: s.Interval().String(), Requests: s.Requests, Per: s.Per.String(), URL: config.Mask("url", s.Address),
		License: s.License, Terms: s.Terms, Attribution: s.Attribution,
	}
}

func unknownSource(name string) error {
	slugs := make([]string, 0, len(sources.List()))
	for _, s := range sources.List() {
		slugs = append(slugs, s.Slug)
	}
	return fmt.Errorf("there is no source %q; use one of %s", name, strings.Join(slugs, ", "))
}

// SourceVerbs list, switch and check the polled sources.
func SourceVerbs(in *instance.Instance) []admin.Command {
	verb := func(name string, run func(ctx context.Context, input SourceInput, emit func(any) error) error) admin.Command {
		return admin.Command{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input SourceInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			return run(ctx, input, emit)
		}}
	}
	return []admin.Command{
		verb("sources.list", func(_ context.Context, _ SourceInput, emit func(any) error) error {
			for _, s := range sources.List() {
				if err := emit(sourceLineOf(in, in.SourceState(s))); err != nil {
					return err
				}
			}
			return nil
		}),
		verb("sources.switch", func(_ context.Context, input SourceInput, emit func(any) error) error {
			s, ok := config.SourceNamed(input.Name)
			if !ok {
				return unknownSource(input.Name)
			}
			if enabled := in.Config.Sources[s.Slug].Enabled; enabled == "true" || enabled == "false" {
				return fmt.Errorf("sources.%s.enabled is configured as %s, which wins over this command: change it there, or make it %s", s.Slug, enabled, config.SourceAuto)
			}
			if err := in.Switches.Set(s.Slug, input.On); err != nil {
				return err
			}
			in.Log.Info("source switched", "source", s.Slug, "on", input.On)
			return emit(sourceLineOf(in, in.SourceState(s)))
		}),
		verb("sources.check", func(ctx context.Context, input SourceInput, emit func(any) error) error {
			return checkSources(ctx, in, input.Name, emit)
		}),
	}
}
