package yields

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// morpho reads what is lent and borrowed in the markets that Morpho lists, the largest first. The address, the limits and
// the changes of its fields are on https://docs.morpho.org/developers/api/get-started and /developers/api/changelog;
// fields were read in https://docs.morpho.org/developers/api/morpho-markets and in src/adaptors/morpho-blue of
// https://github.com/DefiLlama/yield-server. Rates are fractions, and net ones are with the rewards; a BigInt comes as a
// number or as text; lltv has 18 decimals, and amounts those of their asset.
//
// What its vaults earn is what the markets pay, less their curators' fees: it is not reported here.
func morpho() poll.Source {
	return poll.Source{
		Slug: "morpho", Name: "Morpho", Version: 1, Aliases: []string{"morpho-blue"},
		URL:         "https://api.morpho.org",
		License:     "public interface without a key; no licence of the values is stated",
		Terms:       "https://morpho.org/terms-of-use",
		Attribution: "Source: Morpho",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{Name: "markets",
			Evidence: producers.Documented("https://docs.morpho.org/developers/api/morpho-markets").And(
				yieldServer("morpho-blue"), defiCLI("morpho/client.go")).But(
				"marketId and listed, which both ask for by their former names, uniqueKey and whitelisted, and the net rates; " +
					"clients that were found by marketId take the rates for fractions as well"),
			Interval: 15 * time.Minute, Requests: poll.FixedRequests(graphQL(morphoQuery))}},
		Moves:    15 * time.Minute,     // by what is borrowed, which changes with every block
		Requests: 60, Per: time.Minute, // of the 5,000 in five minutes
		MaxBody: 16 << 20,
		Decode:  decodeMorpho,
	}
}

// morphoQuery names the chains, since without them only Ethereum's are returned: Ethereum, Optimism, Unichain, Polygon,
// Monad, Stable, HyperEVM, Base, Arbitrum and Katana. A thousand is as many as one answer has, and more than are listed.
const morphoQuery = `{
	markets(
		first: 1000, orderBy: SupplyAssetsUsd, orderDirection: Desc,
		where: {listed: true, chainId_in: [1, 10, 130, 137, 143, 988, 999, 8453, 42161, 747474]}
	) {
		items {
			marketId lltv chain { id network } loanAsset { address symbol decimals } collateralAsset { address symbol }
			state { supplyApy netSupplyApy borrowApy netBorrowApy supplyAssetsUsd borrowAssetsUsd collateralAssetsUsd liquidityAssets }
		}
	}
}`

type morphoMarket struct {
	ID    string        `json:"marketId"`
	LLTV  producers.Num `json:"lltv"`
	Chain struct {
		Number  producers.Num `json:"id"`
		Network string        `json:"network"`
	} `json:"chain"`
	Loan struct {
		Address  string        `json:"address"`
		Symbol   string        `json:"symbol"`
		Decimals producers.Num `json:"decimals"`
	} `json:"loanAsset"`
	// Collateral is null of a market that is only a place to wait: nothing can be borrowed there.
	Collateral *struct {
		Symbol string `json:"symbol"`
	} `json:"collateralAsset"`
	State *struct {
		Supply        producers.Num `json:"supplyApy"`
		NetSupply     producers.Num `json:"netSupplyApy"`
		Borrow        producers.Num `json:"borrowApy"`
		NetBorrow     producers.Num `json:"netBorrowApy"`
		SupplyUSD     producers.Num `json:"supplyAssetsUsd"`
		BorrowUSD     producers.Num `json:"borrowAssetsUsd"`
		CollateralUSD producers.Num `json:"collateralAssetsUsd"`
		Liquidity     producers.Num `json:"liquidityAssets"`
	} `json:"state"`
}

func decodeMorpho(_ string, body []byte, out *poll.Readings) error {
	response, err := graphQLAnswer[struct {
		Markets *struct {
			Items []json.RawMessage `json:"items"`
		} `json:"markets"`
	}](body, out)
	if err != nil {
		return err
	}
	if response.Markets == nil || len(response.Markets.Items) == 0 {
		out.Refused = nil // nothing of it counts
		return producers.Unreadable("no market in it")
	}
	answer.EachRow(response.Markets.Items, out, readMorphoMarket)
	return nil
}

func readMorphoMarket(row json.RawMessage, out *poll.Readings) error {
	var m morphoMarket
	var f answer.Fields
	if !f.Parse(row, &m) {
		return f.Err
	}
	if m.State == nil { // it is being indexed
		return nil
	}
	rate := func(category string, net, base producers.Num) *eventsv1.Rate {
		r := &eventsv1.Rate{
			Project: "morpho-blue", Chain: m.Chain.Network, Pool: string(m.Chain.Number) + "-" + m.ID,
			Name: m.Loan.Symbol, Category: category,
			Raw: string(net), RawUnit: "apy_fraction", Reward: difference(net, base), Term: "flexible",
			Symbol: m.Loan.Symbol, Tokens: addresses(m.Loan.Address),
		}
		if m.Collateral != nil {
			r.Name = m.Collateral.Symbol + "/" + m.Loan.Symbol
		}
		return r
	}
	lending := rate(schemas.RateLending, m.State.NetSupply, m.State.Supply)
	lending.TvlUsd = string(m.State.SupplyUSD)
	out.Rate(lending)
	if m.Collateral == nil {
		return nil
	}
	borrowing := rate(schemas.RateBorrowing, m.State.NetBorrow, m.State.Borrow)
	borrowing.TvlUsd, borrowing.CollateralUsd = string(m.State.BorrowUSD), string(m.State.CollateralUSD)
	borrowing.MaxLtv, borrowing.MaxAmount = whole(m.LLTV, "18"), whole(m.State.Liquidity, m.Loan.Decimals)
	out.Rate(borrowing)
	return nil
}
