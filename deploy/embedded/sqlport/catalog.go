package sqlport

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// object is a table or view of the owner's engine, as the child makes its own of it.
type object struct {
	Database string `json:"database"`
	Name     string `json:"name"`
	View     bool   `json:"view"`
	// SQL creates it in the child; two objects are the same if it is.
	SQL string `json:"sql"`
}

// catalogOf reads what the owner has. Tables of engines other than MergeTree's live in the owner's memory, or are files
// of a form that only one process may open: they are not shown. tables is their folder, in which the child works.
func catalogOf(owner *engine.Engine, tables string) ([]object, error) {
	text, err := owner.Ask(`SELECT database, name, engine, create_table_query AS sql, comment != '' AS commented, data_paths AS paths FROM system.tables
		WHERE database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA') AND NOT is_temporary ORDER BY database, name`, "JSONEachRow")
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	var objects []object
	for line := range strings.Lines(text) {
		var row struct {
			Database, Name, Engine, SQL string
			Commented                   uint8
			Paths                       []string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
		switch {
		case row.Engine == "View":
			objects = append(objects, object{row.Database, row.Name, true, row.SQL})
		case strings.HasSuffix(row.Engine, "MergeTree") && len(row.Paths) == 1:
			beneath, ok := strings.CutPrefix(row.Paths[0], tables+"/")
			if !ok {
				return nil, fmt.Errorf("reading the catalogue: %s.%s lies in %s, and not below %s", row.Database, row.Name, row.Paths[0], tables)
			}
			create := row.SQL
			if row.Commented != 0 {
				// The settings come before the table's comment, which is the last clause. Quotation marks within are escaped.
				create = create[:strings.LastIndex(create, " COMMENT '")]
			}
			objects = append(objects, object{row.Database, row.Name, false, readOnly(create, beneath)})
		}
	}
	return objects, nil
}

// readOnly is the statement that attaches the table whose files are at path: as one on a read-only disk, which the engine
// means for many readers beside one writer (its setting refresh_parts_interval, in seconds).
func readOnly(create, path string) string {
	disk := "disk = disk(type = object_storage, object_storage_type = local_blob_storage, metadata_type = plain, path = " +
		quote(path) + ", readonly = 1), table_disk = 1, refresh_parts_interval = 1"
	if strings.Contains(create, "\nSETTINGS ") || strings.Contains(create, " SETTINGS ") {
		return create + ", " + disk
	}
	return create + " SETTINGS " + disk
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func quoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

func (o object) key() string { return quoteName(o.Database) + "." + quoteName(o.Name) }

// mirror is what the child's engine holds.
type mirror struct {
	engine *engine.Engine
	made   map[string]object
}

// apply makes the engine hold want, and nothing else. Statements that run go on with what they began with.
func (m *mirror) apply(want []object) error {
	wanted := map[string]object{}
	databases := map[string]bool{}
	for _, o := range want {
		wanted[o.key()] = o
		if !databases[o.Database] {
			databases[o.Database] = true
			if err := m.do("CREATE DATABASE IF NOT EXISTS " + quoteName(o.Database)); err != nil {
				return err
			}
		}
	}
	var waiting []object
	for key, have := range m.made {
		if now, ok := wanted[key]; ok && now == have {
			continue
		}
		kind := "TABLE "
		if have.View {
			kind = "VIEW "
		}
		if err := m.do("DROP " + kind + "IF EXISTS " + key + " SYNC"); err != nil {
			return err
		}
		delete(m.made, key)
	}
	for _, views := range []bool{false, true} {
		for _, o := range want {
			if _, ok := m.made[o.key()]; !ok && o.View == views {
				waiting = append(waiting, o)
			}
		}
	}
	// A view may be listed before another one that it reads from: go round until nothing moves any more.
	for len(waiting) > 0 {
		var left []object
		var failed error
		for _, o := range waiting {
			if err := m.do(o.SQL); err != nil {
				left, failed = append(left, o), errors.Join(failed, fmt.Errorf("%s: %w", o.key(), err))
				continue
			}
			m.made[o.key()] = o
		}
		if len(left) == len(waiting) {
			return failed
		}
		waiting = left
	}
	return nil
}

func (m *mirror) do(sql string) error {
	_, err := m.engine.Ask(sql, "Null")
	return err
}
