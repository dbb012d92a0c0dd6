package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/keys"
)

// Pepper is the secret of this installation's key hashes, made on the first start. Every process of
// an installation needs the same one.
func (in *Instance) Pepper() ([]byte, error) {
	if path := in.Config.Auth.PepperFile; path != "" {
		secret, err := config.ReadSecret("auth.pepper_file", path)
		return []byte(secret), err
	}
	path := in.Dir.Path("pepper")
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Renamed into place: half a pepper would end every key that was made with it.
		secret = keys.NewPepper()
		if err = os.WriteFile(path+".new", secret, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pepper of the keys: %w", err)
	}
	if len(secret) < keys.PepperLength {
		return nil, fmt.Errorf("reading the pepper of the keys: %s has %d bytes instead of %d: restore it from a backup, or remove it and create all keys again: existing keys are invalid without it", path, len(secret), keys.PepperLength)
	}
	return secret, nil
}
