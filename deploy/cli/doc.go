// Package cli is the command line. A command asks a running instance through its admin socket, or opens the parts itself.
package cli
