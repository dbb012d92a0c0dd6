// Package marketlog is the Go client of a Marketlog server. A [Client] has a method for each operation of the server's /openapi.json, named as
// there, whose answer is a type of package api; SQL; and the stream, which goes on by itself over disconnects and restarts of the server, with
// every price exactly once where that is asked for. It needs nothing beside the standard library.
//
//	client, err := marketlog.New(marketlog.Options{}) // MARKETLOG_URL and MARKETLOG_API_KEY
//	if err != nil {
//		return err
//	}
//	answer, err := client.GetPrice(ctx, "BTC", &marketlog.GetPriceOptions{Vs: "eur"})
//	if err != nil {
//		return err
//	}
//	fmt.Println(answer.Data.Aggregated.Price)
//	for price, err := range client.Prices(ctx, "BTC", "ETH") {
//		if err != nil {
//			return err
//		}
//		fmt.Println(price.Symbol, price.Price)
//	}
//
// Calls that fail for a while are made again, as [Retry] describes. What the server refuses is an error of a type for each thing that can be done
// about it, such as [NotFound] or [InvalidRequest], for [errors.As]; all are an [APIError] too.
package marketlog
