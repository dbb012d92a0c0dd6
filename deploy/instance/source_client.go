package instance

import (
	"fmt"

	"github.com/marketlog/marketlog/producers/fetch"
)

// SourceConfig bounds what is asked of a source, and carries its key.
func (in *Instance) SourceConfig(s SourceState) (fetch.Config, error) {
	cfg := fetch.SourceConfig(s.Source)
	key, err := in.Config.Sources[s.Slug].Key(s.Slug)
	cfg.KeyHeader, cfg.Key, cfg.Sign = s.KeyHeader, key, s.Sign
	return cfg, err
}

// SourceClient makes the client that asks a source, with its key and within its budget.
func (in *Instance) SourceClient(s SourceState) (*fetch.Client, error) {
	cfg, err := in.SourceConfig(s)
	if err != nil {
		return nil, err
	}
	client, err := fetch.New(cfg, in.Clock, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", s.Slug, err)
	}
	return client, nil
}
