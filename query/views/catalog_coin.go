package views

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// CatalogCoin is a coin as all sources together describe it. It never changes.
type CatalogCoin struct {
	// ID is canonical, Symbol in upper case.
	ID, Symbol, Name string
	// Rank is by market cap, 1 is the largest; 0 for none.
	Rank int
	// Market is the coin's newest row, nil without one.
	Market *eventsv1.Market
	// FoldedRow is the row as the markets fold wrote it, and Figures what candles show of the coin, which together are Market. Figures
	// are those at FiguresAt, zero where none were known.
	FoldedRow *eventsv1.Market
	Figures   schemas.CandleFigures
	FiguresAt time.Time
	// Listed, Detailed and Traded are in a source's own words: nil where none lists the coin, has reported its details, or says what it is beside its market.
	Listed, Detailed, Traded *eventsv1.Coin
	// What follows is of the details where they have it, else of the list, else of what comes with a market.
	ImageURL, Description string
	// Categories by the source's names, Platforms in its order.
	Categories []string
	Platforms  []*eventsv1.Platform
	// CreatedAt is the source's own date, ISO 8601; empty where it has none.
	CreatedAt string
	// Folded holds name, symbol and id as Fold writes them, one a line: what a search looks in.
	Folded string
	// Own is the coin's row of our own table, whose coins venues are read for; its Rank is 0 for a coin that is not in it, and
	// orders coins that have no rank yet.
	Own schemas.Coin
	// stated are its names but those of its row, which count where nobody else has any.
	stated names
}

type names struct{ symbol, name string }

// Fold writes a text as searches compare it.
func Fold(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// coinSources are whose words about a coin count first.
var coinSources = []string{"coingecko", "coinpaprika"}

// Describes reports whether coins of the catalog are described by a source's words.
func Describes(source string) bool { return slices.Contains(coinSources, source) }

// byRank orders coins: those with a rank, then those that our table ranks, then by id.
func byRank(a, b *CatalogCoin) int {
	return cmp.Or(rankLast(a.Rank, b.Rank), rankLast(a.Own.Rank, b.Own.Rank), strings.Compare(a.ID, b.ID))
}

// bySize orders coins that a name may mean. One of our table whose rank is not known yet counts by its rank there, so that what a
// name means does not depend on whose row came first after a start.
func bySize(a, b *CatalogCoin) int {
	return cmp.Or(rankLast(cmp.Or(a.Rank, a.Own.Rank), cmp.Or(b.Rank, b.Own.Rank)), strings.Compare(a.ID, b.ID))
}

// rankLast orders ranks, 0 for none after all others.
func rankLast(a, b int) int { return cmp.Compare(uint(a)-1, uint(b)-1) }

// withRow is the coin with another row.
func (c *CatalogCoin) withRow(row measuredRow) *CatalogCoin {
	next := *c
	next.setRow(row)
	if next.stated.symbol == "" || next.stated.name == "" {
		next.nameByRow()
	}
	return &next
}

// known means that anybody but a row names the coin, or that it has a row: one that only rows name is gone with its price, so that what is known does not
// depend on how long ago the process was started.
func (c *CatalogCoin) known() bool {
	return c.Market != nil || c.Own.Rank > 0 || c.stated != names{}
}

func (c *CatalogCoin) setRow(row measuredRow) {
	c.Market, c.FoldedRow, c.Figures, c.FiguresAt = row.measured, row.folded, row.figures, row.at
	c.Rank = int(row.measured.GetRank())
}

// measuredRow is a row with what candles show of it.
type measuredRow struct {
	measured, folded *eventsv1.Market
	figures          schemas.CandleFigures
	at               time.Time
}

// row is the newest row of a coin.
func (c *Catalog) row(id string) measuredRow {
	coin, _ := c.table.ByID(id)
	return measure(c.rows[id], coin, c.figures, c.minute)
}

// measure is a row with the figures of a coin at the end of a minute (Unix nanoseconds), where they are known; no row of one without a price, which
// has nothing but names.
func measure(row *eventsv1.Market, coin schemas.Coin, figures *AllFigures, minute int64) measuredRow {
	if row.GetPrice() <= 0 {
		return measuredRow{}
	}
	if coin.ID == "" || figures == nil {
		return measuredRow{measured: row, folded: row}
	}
	own := figures.Of(coin)
	if !figures.Near(time.Unix(0, minute)) {
		own = schemas.CandleFigures{Ever: own.Ever, Ago: own.Ago}
	}
	return measuredRow{own.Measure(row), row, own, figures.At}
}

// describe puts together what is known of a coin.
func (c *Catalog) describe(id string) *CatalogCoin {
	coin := &CatalogCoin{ID: id}
	coin.setRow(c.row(id))
	for _, source := range coinSources {
		coin.Listed = cmp.Or(coin.Listed, c.reported[id][part{source, "list"}])
		coin.Detailed = cmp.Or(coin.Detailed, c.reported[id][part{source, "detail"}])
		coin.Traded = cmp.Or(coin.Traded, c.reported[id][part{source, "market"}])
	}
	if own, ok := c.table.ByID(id); ok {
		coin.Symbol, coin.Name, coin.Own = own.Symbol, own.Name, own
	}
	for _, reported := range []*eventsv1.Coin{coin.Detailed, coin.Listed, coin.Traded} {
		coin.Symbol = cmp.Or(coin.Symbol, strings.ToUpper(reported.GetSymbol()))
		coin.Name = cmp.Or(coin.Name, reported.GetName())
		coin.ImageURL = cmp.Or(coin.ImageURL, reported.GetImageUrl())
		coin.Description = cmp.Or(coin.Description, reported.GetDescription())
		coin.CreatedAt = cmp.Or(coin.CreatedAt, reported.GetCreatedAt())
		if len(coin.Categories) == 0 {
			coin.Categories = reported.GetCategories()
		}
		if len(coin.Platforms) == 0 {
			coin.Platforms = reported.GetPlatforms()
		}
	}
	coin.stated = names{coin.Symbol, coin.Name}
	coin.nameByRow()
	return coin
}

// nameByRow has a coin that nobody else names named by its row, and what it is searched by follow its names.
func (c *CatalogCoin) nameByRow() {
	c.Symbol, c.Name = cmp.Or(c.stated.symbol, c.Market.GetSymbol()), cmp.Or(c.stated.name, c.Market.GetName())
	c.Folded = Fold(c.Name) + "\n" + Fold(c.Symbol) + "\n" + c.ID
}

// CategorizedShare is how much of the market cap of coins is of those with categories, in percent; nil where none has one. The caps are
// added up in the order of the coins.
func CategorizedShare(coins []*CatalogCoin) *float64 {
	sum, all := 0.0, 0.0
	for _, c := range coins {
		marketCap := c.Market.GetMarketCap()
		if all += marketCap; len(c.Categories) > 0 {
			sum += marketCap
		}
	}
	if all <= 0 {
		return nil
	}
	percent := sum / all * 100
	return &percent
}
