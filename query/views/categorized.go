package views

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
