// Package docs holds the guides and the sample queries, as the program carries them along.
package docs

import "embed"

// Files are the guides, in Markdown, and in queries/ the samples of SQL in the order of their names. A sample begins with comments: its
// title, its columns, and what makes it right. dbt/sources.yml declares the views to dbt.
//
//go:embed *.md queries/*.sql dbt/sources.yml
var Files embed.FS
