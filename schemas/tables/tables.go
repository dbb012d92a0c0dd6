// Package tables holds the tables of ClickHouse, one a file, as migrations in order, and the views
// that analysts read.
package tables

import "embed"

// Files are the migrations.
//
//go:embed *.sql
var Files embed.FS

// Views are statements that create views: those of analysts, v_…, in the default database, and beside
// the tables those that they are built of. {database} is replaced by the database of the tables, other names
// in braces for what the coin table states; a view that names {interval} is made once for each. They are
// made in the order of their names: the number is the step.
//
//go:embed views/*.sql
var Views embed.FS
