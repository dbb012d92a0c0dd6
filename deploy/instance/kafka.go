package instance

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/stream/archive"
)

// kafkaPassword is that of the embedded broker, drawn at the first start.
func (in *Instance) kafkaPassword() (string, error) {
	path := in.Dir.Path(config.KafkaPasswordFile)
	password, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(password)) == 0 {
		// Renamed into place: another process may read it at any time.
		password = []byte(rand.Text() + rand.Text() + "\n")
		if err = os.WriteFile(path+".new", password, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("reading the password of the embedded broker: %w", err)
	}
	return string(bytes.TrimSpace(password)), nil
}

// ownGroups are the consumer groups of the roles: who joined one of them would take partitions away from it.
func ownGroups() (names, prefixes []string) {
	names = []string{resolve.Name, quotes.Name, PricesUnit().Name}
	for _, minutes := range MinuteFolds() {
		names = append(names, minutes.Name)
	}
	return append(names, archive.Group), []string{processors.SinkGroups}
}

// isOwnGroup reports whether a consumer group is one of the roles that use what they read up.
func isOwnGroup(group string) bool {
	names, prefixes := ownGroups()
	return group != archive.Group && (slices.Contains(names, group) ||
		slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(group, prefix) }))
}
