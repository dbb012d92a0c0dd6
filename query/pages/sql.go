package pages

import (
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/marketlog/marketlog/schemas/tables"
)

// sqlView is the page of SQL. It runs nothing by itself: a link may carry a statement, and whoever wrote it is not who looks at it.
type sqlView struct {
	Served    bool     `json:"served"`
	Statement string   `json:"statement"`
	Samples   []sample `json:"samples"`
	// Parameterized are the views that take parameters: the engine lists no columns of these.
	Parameterized []parameterizedView `json:"parameterized"`
}

// parameterizedView is a view with its columns.
type parameterizedView struct {
	Name    string          `json:"name"`
	Columns []tables.Column `json:"columns"`
}

// readParameterized reads the views that take parameters.
func readParameterized() (found []parameterizedView, err error) {
	list, err := tables.Declared()
	for _, v := range list {
		if v.Parameters {
			found = append(found, parameterizedView{v.Name, v.Columns})
		}
	}
	return found, err
}

// sample is a statement to begin with, its title and the comments above it included.
type sample struct {
	Name      string `json:"name"`
	Statement string `json:"statement"`
}

// readSamples reads the samples of the documentation, in the order of their names.
func readSamples(files fs.FS) ([]sample, error) {
	if files == nil {
		return nil, nil
	}
	names, err := fs.Glob(files, "queries/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing the sample queries: %w", err)
	}
	var samples []sample
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the sample queries: %w", err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		samples = append(samples, sample{strings.TrimPrefix(title, "-- "), strings.TrimSpace(string(text))})
	}
	return samples, nil
}

// maxLinked bounds a statement that an address carries.
const maxLinked = 4 << 10

// sendSQL answers /sql.
func (u *Unit) sendSQL(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "SQL")
	if !ok {
		return err
	}
	v := &sqlView{Served: u.deps.SQL != nil && u.deps.SQL(), Samples: u.samples, Parameterized: u.parameterized}
	if len(u.samples) > 0 {
		v.Statement = u.samples[0].Statement
	}
	if linked := c.Query("query"); linked != "" && len(linked) <= maxLinked {
		v.Statement = linked
	}
	if !wantsPage(r.ctx) {
		return u.sendSQLText(r.ctx)
	}
	// A form of a page without a referrer names no origin, and a session counts only from our own.
	r.ctx.Response.Header.Set(fiber.HeaderReferrerPolicy, "same-origin")
	return u.show(r.ctx, http.StatusOK, view{Page: pageSQL, Title: "SQL", About: "Ask the views of the log in SQL.", Data: v, SQL: v})
}
