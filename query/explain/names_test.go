package explain

import (
	"encoding/json"
	"slices"
	"testing"
)

// namedAnswer is an answer with each way in which a field names its numbers.
type namedAnswer struct {
	ID     string        `json:"id"`
	Meta   namedMeta     `json:"meta"`
	Pairs  [][2]float64  `json:"pairs" explain:"pairs/{id}/{0}"`
	Price  float64       `json:"price" explain:"price/{meta.region|all}/{meta.granularity|none}/{id|nobody}"`
	List   []float64     `json:"list" explain:"list/{id}/{left}"`
	Points []namedPoint  `json:"points"`
	Rates  []namedReport `json:"rates"`
}

type namedMeta struct {
	Granularity string `json:"granularity"`
}

type namedPoint struct {
	At        int64   `json:"at"`
	Intervals int     `json:"intervals,omitempty"`
	Value     float64 `json:"value" explain:"point/{meta.granularity}/{at}"`
	High      float64 `json:"high" explain:"high/{at}/{intervals|1}"`
}

type namedReport struct {
	Rate     float64     `json:"rate" explain:"rate-history/{rate}"`
	Metadata namedOrigin `json:"metadata"`
}

type namedOrigin struct {
	Origin string  `json:"origin"`
	Apr    float64 `json:"apr" explain:"rate-history/apr/{rate}"`
}

// Numbers of lists are named by their pairs or by how many follow, those of points by fields of objects beside them; merged points whose names do not hold of how many have no name.
func TestNumbersOfListsAreNamed(t *testing.T) {
	var body any
	const answer = `{"id": "x", "price": 1, "meta": {"granularity": "hourly"}, "pairs": [[1795166400000, 5], [1795170000000, 6]], "list": [7, 8, 9],
		"points": [{"at": 1, "value": 10, "high": 11}, {"at": 2, "intervals": 3, "value": 11, "high": 12}], "rates": [{"rate": 1, "metadata": {"origin": "live", "apr": 2}}, {"rate": 3, "metadata": {"origin": "backfill", "apr": 4}}]}`
	if err := json.Unmarshal([]byte(answer), &body); err != nil {
		t.Fatal(err)
	}
	schemas := namedIn(namedAnswer{})
	found := numbers{registry: schemas.registry, seen: map[string]bool{}}
	found.walk(schemas.forms[0], body, nil)
	slices.Sort(found.found)
	want := []string{"high/1/1", "high/2/3", "list/x/0", "list/x/1", "list/x/2", "pairs/x/1795166400000", "pairs/x/1795170000000", "point/hourly/1", "price/all/hourly/x", "rate-history/1", "rate-history/3", "rate-history/apr/1", "rate-history/apr/3"}
	if !slices.Equal(found.found, want) {
		t.Errorf("got %q, want %q", found.found, want)
	}
}
