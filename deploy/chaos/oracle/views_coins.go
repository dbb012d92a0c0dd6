package oracle

import (
	"fmt"
	"sort"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// sourcePlace orders sources: what the first reports counts before what others do.
func sourcePlace(source string) string {
	switch source {
	case "coingecko":
		return "1"
	case "coinpaprika":
		return "2"
	}
	return "3" + source
}

// CoinEvents works out v_coin_events.
func (m Market) CoinEvents(ref Reference) View {
	v := View{Name: "v_coin_events", Key: []string{"time", "source", "source_id", "part"}}
	events := newest(ref.Coins, func(c *eventsv1.Coin) string {
		return fmt.Sprint(c.Source, "|", c.SourceId, "|", c.Part, "|", c.IngestTime)
	})
	sort.SliceStable(events, func(i, j int) bool { return events[i].IngestTime < events[j].IngestTime })
	before := map[string]*eventsv1.Coin{}
	for _, c := range events {
		id := m.ID(c.Source, c.SourceId)
		key := fmt.Sprint(id, "|", c.Source, "|", c.SourceId, "|", c.Part)
		changed := []string{}
		if b := before[key]; b != nil {
			if changed = differing(b, c); len(changed) == 0 {
				continue
			}
		}
		before[key] = c
		v.Rows = append(v.Rows, Row{
			"time": instant(c.IngestTime), "coin_id": id, "source": c.Source, "source_id": c.SourceId, "part": c.Part, "changed": changed,
			"symbol": c.Symbol, "name": c.Name, "rank": c.Rank, "kind": c.Kind, "categories": texts(c.Categories), "platforms": platforms(c),
			"image_url": c.ImageUrl, "created_at": c.CreatedAt, "inactive": c.Inactive, "event_time": instant(c.EventTime),
		})
	}
	return v
}

// differing names what a source reports otherwise than before, in the order of the columns. Ranks and statistics change always.
func differing(before, c *eventsv1.Coin) []string {
	list := []string{}
	for _, f := range []struct {
		name string
		of   func(*eventsv1.Coin) any
	}{
		{"symbol", func(c *eventsv1.Coin) any { return c.Symbol }}, {"name", func(c *eventsv1.Coin) any { return c.Name }},
		{"kind", func(c *eventsv1.Coin) any { return c.Kind }}, {"categories", func(c *eventsv1.Coin) any { return c.Categories }},
		{"platforms", func(c *eventsv1.Coin) any { return platforms(c) }}, {"description", func(c *eventsv1.Coin) any { return c.Description }},
		{"image_url", func(c *eventsv1.Coin) any { return c.ImageUrl }}, {"links", func(c *eventsv1.Coin) any { return links(c) }},
		{"created_at", func(c *eventsv1.Coin) any { return c.CreatedAt }}, {"inactive", func(c *eventsv1.Coin) any { return c.Inactive }},
	} {
		if !sameFields(flatten("", f.of(before)), flatten("", f.of(c))) {
			list = append(list, f.name)
		}
	}
	return list
}

func texts(list []string) []string { return append([]string{}, list...) }

func platforms(c *eventsv1.Coin) []Row {
	list := []Row{}
	for _, p := range c.Platforms {
		list = append(list, Row{"name": p.Name, "address": p.Address})
	}
	return list
}

func links(c *eventsv1.Coin) []Row {
	list := []Row{}
	for _, l := range c.Links {
		list = append(list, Row{"kind": l.Kind, "url": l.Url})
	}
	return list
}

func developer(c *eventsv1.Coin) []Row {
	list := []Row{}
	for _, d := range c.Developer {
		list = append(list, Row{"name": d.Name, "value": d.Value})
	}
	return list
}

// CoinsNow works out v_coins; ranks are by coin id.
func (m Market) CoinsNow(ref Reference, ranks map[string]uint32) View {
	v := View{Name: "v_coins", Key: []string{"coin_id"}}
	id := func(c *eventsv1.Coin) string { return m.ID(c.Source, c.SourceId) }
	first := map[string]int64{}
	for _, c := range ref.Coins {
		if at, ok := first[id(c)]; !ok || c.IngestTime < at {
			first[id(c)] = c.IngestTime
		}
	}
	now := newest(ref.Coins, func(c *eventsv1.Coin) string { return fmt.Sprint(c.Source, "|", c.SourceId, "|", c.Part) })
	names, coins := group(now, id)
	for _, name := range names {
		if name == "" {
			continue
		}
		list := coins[name]
		sort.Slice(list, func(i, j int) bool { return preferred(list[i]) < preferred(list[j]) })
		row := Row{
			"coin_id": name, "symbol": "", "name": "", "rank": ranks[name], "kind": "", "categories": []string{}, "platforms": []Row{}, "description": "", "image_url": "",
			"links": []Row{}, "developer": []Row{}, "created_at": "", "first_seen": instant(first[name]), "details_updated_at": nil, "inactive": true,
		}
		sources := map[string]bool{}
		var detailed int64
		for i := len(list) - 1; i >= 0; i-- { // what comes first is written last
			c := list[i]
			sources[c.Source] = true
			if c.Part == "detail" && c.IngestTime > detailed {
				detailed = c.IngestTime
			}
			if !c.Inactive {
				row["inactive"] = false
			}
			for column, text := range map[string]string{"symbol": strings.ToUpper(c.Symbol), "name": c.Name, "kind": c.Kind, "description": c.Description, "image_url": c.ImageUrl, "created_at": c.CreatedAt} {
				if text != "" {
					row[column] = text
				}
			}
			if len(c.Categories) > 0 {
				row["categories"] = texts(c.Categories)
			}
			for column, pairs := range map[string][]Row{"platforms": platforms(c), "links": links(c), "developer": developer(c)} {
				if len(pairs) > 0 {
					row[column] = pairs
				}
			}
		}
		row["details_updated_at"] = known(detailed)
		reporting := []string{}
		for source := range sources {
			reporting = append(reporting, source)
		}
		sort.Strings(reporting)
		row["sources"] = reporting
		v.Rows = append(v.Rows, row)
	}
	return v
}

func preferred(c *eventsv1.Coin) string {
	return strings.Join([]string{sourcePlace(c.Source), c.Part, c.SourceId}, "|")
}
