// Package config reads the configuration from file, environment and flags, names every fault with its key, origin and remedy,
// and turns it into the settings of the other packages.
package config
