package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// ManifestFile is the name of the manifest in an export's directory.
const ManifestFile = "manifest.json"

const (
	manifestVersion = 1
	// maxManifest bounds a manifest that is read, bytes: some 100,000 files.
	maxManifest = 256 << 20
)

// Manifest says what the files of a directory are. It holds no time of the clock: the same export of the same log gives the same
// manifest.
type Manifest struct {
	// Manifest is the version of this form.
	Manifest int `json:"manifest"`
	// OwnUse means that values are among the files whose terms forbid to pass them on.
	OwnUse bool `json:"ownUse"`
	// Files are those that are whole, by path.
	Files []Entry `json:"files"`
	// Days are those of a lake whose files are all among Files, in the order in which they were exported.
	Days []Day `json:"days,omitempty"`
	// Schemas are the columns of the files, by the name that their entries have for them.
	Schemas map[string][]SchemaColumn `json:"schemas"`
	// Sources say under which terms the values of the sources in the files are passed on, by their names.
	Sources map[string]SourceTerms `json:"sources"`
}

// Day is a UTC day of a dataset that a lake has whole.
type Day struct {
	Dataset string `json:"dataset"`
	// Date is the day, as 2026-11-25.
	Date  string `json:"date"`
	Files int    `json:"files"`
	Rows  int64  `json:"rows"`
}

// Entry is one file.
type Entry struct {
	// Path is below the directory, with slashes.
	Path    string `json:"path"`
	Dataset string `json:"dataset"`
	Format  string `json:"format"`
	Venue   string `json:"venue,omitempty"`
	// From, inclusive, and To, exclusive, bound the rows.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Rows int64     `json:"rows"`
	// Bytes is the size of the file.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Schema string `json:"schema"`
	// Position is how much of the log was in the tables when they were read, by topic: at least all records below these offsets.
	Position map[string][]Offset `json:"position"`
	// Logic is the version of the logic that derives each topic, in the program that exported.
	Logic map[string]uint32 `json:"logic"`
	// Sources are the names of those whose values are in the file, or in what its rows are made of.
	Sources []string `json:"sources"`
}

// Offset is how far a partition had come: the tables had all records below Next.
type Offset struct {
	Partition int32 `json:"partition"`
	Next      int64 `json:"next"`
}

// SchemaColumn is one column: its type as ClickHouse writes it, and what it means, with its unit.
type SchemaColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// SourceTerms are what a source declares of itself. Empty texts mean that it is not known.
type SourceTerms struct {
	Name string `json:"name"`
	// License says how its values may be passed on, Terms is the page that has them, and Attribution is to be shown with them.
	License     string `json:"license"`
	Terms       string `json:"terms"`
	Attribution string `json:"attribution"`
	// OwnUse says why its values must not be passed on; empty where they may, or where nothing is known.
	OwnUse string `json:"ownUse,omitempty"`
	// Simulated means that the values were invented by the simulator, and are nobody's.
	Simulated bool `json:"simulated,omitempty"`
}

// readManifest reads the manifest of a directory; a new one if there is none.
func readManifest(dir *os.Root, ownUse bool) (*Manifest, error) {
	m := &Manifest{Manifest: manifestVersion, OwnUse: ownUse, Files: []Entry{}, Schemas: map[string][]SchemaColumn{}, Sources: map[string]SourceTerms{}}
	f, err := dir.Open(ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the manifest: %w", err)
	case len(content) > maxManifest:
		return nil, fmt.Errorf("%s is larger than %d bytes; export into another directory", f.Name(), maxManifest)
	}
	read := &Manifest{}
	if err := json.Unmarshal(content, read); err != nil {
		return nil, fmt.Errorf("reading %s, which is not a manifest of an export (%w); export into another directory", f.Name(), err)
	}
	if read.Manifest != manifestVersion {
		return nil, fmt.Errorf("%s has the form %d, this program writes %d; export into another directory", f.Name(), read.Manifest, manifestVersion)
	}
	if read.OwnUse != ownUse {
		return nil, fmt.Errorf("%s is of an export %s --own-use, this one is %s; export into another directory, so that what may be passed on is not mixed with what may not",
			f.Name(), with(read.OwnUse), with(ownUse))
	}
	m.Files = append(m.Files, read.Files...)
	m.Days = read.Days
	maps.Copy(m.Schemas, read.Schemas)
	maps.Copy(m.Sources, read.Sources)
	return m, nil
}

func with(yes bool) string {
	if yes {
		return "with"
	}
	return "without"
}

// has reports whether a lake has the day of a request.
func (m *Manifest) has(r Request) bool {
	return slices.ContainsFunc(m.Days, func(d Day) bool { return d.Dataset == r.Dataset && d.Date == r.From.UTC().Format(time.DateOnly) })
}

// otherFormat is one that days of a request's dataset have in a lake, if it is not the request's; empty: none has.
func (m *Manifest) otherFormat(r Request) string {
	i := slices.IndexFunc(m.Files, func(e Entry) bool { return strings.HasPrefix(e.Path, lakeFolder+r.Dataset+"/") && e.Format != r.Format })
	if i < 0 {
		return ""
	}
	return m.Files[i].Format
}

// entry finds the file at a path.
func (m *Manifest) entry(path string) (Entry, bool) {
	i, found := m.place(path)
	if !found {
		return Entry{}, false
	}
	return m.Files[i], true
}

func (m *Manifest) place(path string) (int, bool) {
	return slices.BinarySearchFunc(m.Files, path, func(e Entry, path string) int {
		switch {
		case e.Path < path:
			return -1
		case e.Path > path:
			return 1
		}
		return 0
	})
}

// enter adds a file, or replaces the one at its path.
func (m *Manifest) enter(e Entry, columns []SchemaColumn, terms map[string]SourceTerms) {
	m.Schemas[e.Schema] = columns
	for _, source := range e.Sources {
		t, ok := terms[source]
		if !ok { // it has never declared itself in this log
			t.Name = source
		}
		m.Sources[source] = t
	}
	i, found := m.place(e.Path)
	if found {
		m.Files[i] = e
		return
	}
	m.Files = slices.Insert(m.Files, i, e)
}

// write replaces the manifest in a directory. Who is ended in its middle leaves the one before.
func (m *Manifest) write(dir *os.Root) error {
	content, err := json.MarshalIndent(m, "", " ")
	if err == nil {
		err = replace(dir, ManifestFile, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return nil
}

func replace(dir *os.Root, path string, content []byte) error {
	f, err := dir.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return commit(dir, path+partial, path)
}

// schemaOf describes columns, and names the description by its content.
func schemaOf(columns []column) (name string, all []SchemaColumn) {
	for _, c := range columns {
		all = append(all, SchemaColumn{Name: c.name, Type: c.kind, Comment: c.comment})
	}
	encoded, _ := json.Marshal(all) // texts only
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), all
}
