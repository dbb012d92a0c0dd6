// Package events holds the schemas of the log as files, for who reads the log with other programs.
package events

import "embed"

// Files are v1/*.proto, and events.binpb: a FileDescriptorSet of them and of all that they import. In the log of a later
// version messages may have more fields, and none has another meaning.
//
//go:embed events.binpb v1/*.proto
var Files embed.FS
