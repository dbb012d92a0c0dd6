package mcp

import (
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// serverName is the name in registries and cards: the owner's domain backwards, then its own.
	serverName = "io.github.marketlog/marketlog"
	// metaSimulated marks results that hold invented numbers.
	metaSimulated = "io.github.marketlog/simulated"
	description   = "Crypto prices, coins, yields and market statistics, read-only, each with its age."
	repository    = "https://github.com/marketlog/marketlog"
	// catalogAge is how long a client may keep the list of tools, which only a new version changes.
	catalogAge = 5 * time.Minute
)

// identity is who answers. Everything that reports of the server is written from it: the handshakes, the
// catalog of tools, the cards and the registry's entry.
type identity struct {
	version string
	// simulated means that the numbers are invented.
	simulated bool
}

func (i identity) title() string {
	if i.simulated {
		return "Marketlog (simulated data)"
	}
	return "Marketlog"
}

func (i identity) implementation() mcp.Implementation {
	return mcp.Implementation{Name: "marketlog", Title: i.title(), Version: i.version, Description: i.description()}
}

func (i identity) description() string {
	if i.simulated {
		return "Simulated: " + description
	}
	return description
}

func (i identity) instructions() string {
	text := "Coins are named by symbol (btc) or by coin id (bitcoin); resolve_symbol finds the id where a symbol is in doubt. " +
		"Prices are in USD unless vs says otherwise, changes in percent, times in UTC. isStale marks what is old: say so when you quote it."
	if i.simulated {
		return "The numbers of this server are simulated: say so whenever you quote one. " + text
	}
	return text
}
