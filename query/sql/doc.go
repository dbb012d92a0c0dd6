// Package sql answers analysts' SQL over the API: for somebody with a key or a session, within narrower limits than the SQL port's,
// in JSON, CSV, Parquet or Arrow, with faults reported by their place in the statement. What runs a statement is the process that the
// SQL port asks, too.
package sql
