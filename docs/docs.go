// Package docs holds the guides, as the program carries them along.
package docs

import "embed"

// Files are the guides, in Markdown.
//
//go:embed *.md
var Files embed.FS
