// Package docs holds the guides and what they link to, as the program carries them along.
package docs

import "embed"

// Files are the guides, in Markdown, with the decisions, examples and proofs that they link to, and in queries/ the samples of SQL in the order of
// their names. A sample begins with comments: its title, its columns, and what makes it right. dbt/sources.yml declares the views to dbt.
//
//go:embed *.md queries/*.sql dbt/sources.yml decisions/*.md proofs examples
var Files embed.FS
