package yields

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// aave reads what is lent and borrowed in the markets of Aave's third version. The address and the queries are those of
// https://aave.com/docs/aave-v3/getting-started/graphql and https://aave.com/docs/aave-v3/markets/data; the types and
// what they mean were read in packages/graphql/schema.graphql of https://github.com/aave/aave-sdk, where the value of a
// PercentValue is a fraction ("1.0 = 100%") and an apy is compounded. Numbers come as text.
//
// What programmes of rewards add is reported as APRs, much of it under conditions, and is left out.
//
// The markets of all chains are asked for at once, and the chains have to be named, so those that the protocol is on are
// asked for first.
func aave() poll.Source {
	chains := &aaveChains{}
	return poll.Source{
		Slug: "aave", Name: "Aave", Version: 1, Aliases: []string{"aave-v3"},
		URL:         "https://api.v3.aave.com",
		License:     "public interface without a key; no licence of the values is stated",
		Terms:       "https://aave.com/terms-of-service",
		Attribution: "Source: Aave",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "chains", Interval: 24 * time.Hour,
				Evidence: producers.Documented("https://aave.com/docs/aave-v3/markets/data").AfterSearching(
					"api.v3.aave.com/graphql, chains(filter: MAINNET_ONLY)"),
				Requests: poll.FixedRequests(graphQL(`{ chains(filter: MAINNET_ONLY) { chainId } }`))},
			{Name: "markets",
				Evidence: producers.Documented("https://aave.com/docs/aave-v3/markets/data").And(defiCLI("aave/client.go")).AfterSearching(
					"api.v3.aave.com/graphql, borrowingState, and descriptions of clients of the interface").But(
					"isFrozen, isPaused, the caps, maxLTV, canBeCollateral, availableLiquidity and borrowingState, which the client does not ask for"),
				Interval: 15 * time.Minute, Requests: chains.requests},
		},
		Moves:    15 * time.Minute,     // by what is borrowed, which changes with every block
		Requests: 10, Per: time.Minute, // no limit is published
		MaxBody: 32 << 20,
		Decode:  chains.decode,
	}
}

// aaveChains are the numbers of the chains that were listed last.
type aaveChains struct{ listed atomic.Pointer[[]string] }

// aaveFirst are asked for before the chains are known: Ethereum, Arbitrum, Base, Avalanche, Polygon, Optimism and BNB.
var aaveFirst = []string{"1", "42161", "8453", "43114", "137", "10", "56"}

func (c *aaveChains) requests(poll.Known) []poll.Request {
	chains := aaveFirst
	if listed := c.listed.Load(); listed != nil {
		chains = *listed
	}
	return []poll.Request{graphQL(fmt.Sprintf(aaveQuery, strings.Join(chains, ", ")))}
}

const aaveQuery = `{
	markets(request: {chainIds: [%s]}) {
		name address chain { name chainId }
		reserves {
			underlyingToken { address symbol } isFrozen isPaused size { usd }
			supplyInfo { apy { value } total { value } supplyCap { amount { value } } maxLTV { value } canBeCollateral }
			borrowInfo {
				apy { value } total { amount { value } usd } borrowCap { amount { value } }
				availableLiquidity { amount { value } } borrowingState
			}
		}
	}
}`

type aaveValue struct {
	Value producers.Num `json:"value"`
}

type aaveAmount struct {
	Amount aaveValue     `json:"amount"`
	USD    producers.Num `json:"usd"`
}

type aaveReserve struct {
	Token struct {
		Address string `json:"address"`
		Symbol  string `json:"symbol"`
	} `json:"underlyingToken"`
	Frozen bool       `json:"isFrozen"`
	Paused bool       `json:"isPaused"`
	Size   aaveAmount `json:"size"`
	Supply struct {
		APY        aaveValue  `json:"apy"`
		Total      aaveValue  `json:"total"`
		Cap        aaveAmount `json:"supplyCap"`
		MaxLTV     aaveValue  `json:"maxLTV"`
		Collateral bool       `json:"canBeCollateral"`
	} `json:"supplyInfo"`
	// Borrow is null of a token that cannot be borrowed.
	Borrow *struct {
		APY       aaveValue  `json:"apy"`
		Total     aaveAmount `json:"total"`
		Cap       aaveAmount `json:"borrowCap"`
		Available aaveAmount `json:"availableLiquidity"`
		State     string     `json:"borrowingState"`
	} `json:"borrowInfo"`
}

type aaveMarket struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Chain   struct {
		Name   string        `json:"name"`
		Number producers.Num `json:"chainId"`
	} `json:"chain"`
	Reserves []json.RawMessage `json:"reserves"`
}

func (c *aaveChains) decode(_ string, body []byte, out *poll.Readings) error {
	response, err := graphQLAnswer[struct {
		Chains []struct {
			Number producers.Num `json:"chainId"`
		} `json:"chains"`
		Markets []aaveMarket `json:"markets"`
	}](body, out)
	if err != nil {
		return err
	}
	var chains []string
	for _, chain := range response.Chains {
		if _, err := strconv.ParseUint(string(chain.Number), 10, 63); err != nil { // it becomes a part of a query
			answer.Refuse(out, producers.Unreadable("%.40q is no number", string(chain.Number)), "a chain")
			continue
		}
		chains = append(chains, string(chain.Number))
	}
	if len(chains) > 0 {
		c.listed.Store(&chains)
		return nil
	}
	reserves := 0
	for _, m := range response.Markets {
		reserves += len(m.Reserves)
		answer.EachRow(m.Reserves, out, m.read)
	}
	if reserves == 0 {
		out.Refused = nil // nothing of it counts
		return producers.Unreadable("neither a chain nor a market with a reserve in it")
	}
	return nil
}

// read takes what a reserve of the market pays and costs.
func (m *aaveMarket) read(row json.RawMessage, out *poll.Readings) error {
	var r aaveReserve
	var f answer.Fields
	if !f.Parse(row, &r) {
		return f.Err
	}
	rate := func(category string, apy aaveValue, value producers.Num) *eventsv1.Rate {
		return &eventsv1.Rate{
			Project: "aave-v3", Chain: m.Chain.Name,
			Pool: strings.ToLower(string(m.Chain.Number) + "-" + m.Address + "-" + r.Token.Address), Name: m.Name,
			Category: category, Raw: string(apy.Value), RawUnit: "apy_fraction", TvlUsd: string(value),
			Term: "flexible", Symbol: r.Token.Symbol, Tokens: addresses(r.Token.Address),
		}
	}
	closed := r.Frozen || r.Paused
	lending := rate(schemas.RateLending, r.Supply.APY, r.Size.USD)
	lending.MaxAmount = remainder(r.Supply.Cap.Amount.Value, r.Supply.Total.Value)
	if r.Supply.Collateral {
		lending.MaxLtv = string(r.Supply.MaxLTV.Value)
	}
	if closed {
		lending.MaxAmount = "0"
	}
	out.Rate(lending)
	if r.Borrow == nil {
		return nil
	}
	borrowing := rate(schemas.RateBorrowing, r.Borrow.APY, r.Borrow.Total.USD)
	left := remainder(r.Borrow.Cap.Amount.Value, r.Borrow.Total.Amount.Value)
	borrowing.MaxAmount = least(left, string(r.Borrow.Available.Amount.Value))
	if closed || r.Borrow.State == "DISABLED" {
		borrowing.MaxAmount = "0"
	}
	out.Rate(borrowing)
	return nil
}
