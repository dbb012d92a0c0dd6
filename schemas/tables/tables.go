// Package tables holds the tables of ClickHouse, one a file, as migrations in order, and the views
// that analysts read.
package tables

import "embed"

// Files are the migrations.
//
//go:embed *.sql
var Files embed.FS

// Views are statements that create the analysts' views in the default database; {database} stands
// for the database of the tables.
//
//go:embed views/*.sql
var Views embed.FS
